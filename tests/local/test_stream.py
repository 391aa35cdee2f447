"""The streams of the local socket: whole, prompt, closed and cancelled as promised."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from bridge.local.stream import LocalListener, LocalStream

LARGE = os.urandom(3_000_000)


Pair = tuple[LocalStream, LocalStream]


@pytest.fixture
def pair() -> Iterator[Pair]:
    near, far = socket.socketpair(socket.AF_UNIX)
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield LocalStream(near), LocalStream(far)


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))
        bound.listen(64)
        yield bound


async def test_more_than_the_kernel_holds_arrives_whole(pair: Pair) -> None:
    near, far = pair
    received = bytearray()

    async def receive() -> None:
        async for chunk in far:
            received.extend(chunk)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await near.send_all(LARGE)
        await near.aclose()

    assert received == LARGE


async def test_what_is_here_is_received_without_waiting(pair: Pair) -> None:
    near, far = pair
    others: list[str] = []
    async with trio.open_nursery() as nursery:
        await near.send_all(b"here")
        nursery.start_soon(trio.lowlevel.checkpoint)
        nursery.start_soon(_note, others)

        received = await far.receive_some()

        assert (received, others) == (b"here", [])


async def _note(others: list[str]) -> None:
    others.append("ran")


async def test_no_more_than_asked_for_is_received(pair: Pair) -> None:
    near, far = pair
    await near.send_all(b"abcdef")

    assert await far.receive_some(4) == b"abcd"
    assert await far.receive_some() == b"ef"


async def test_a_cancellation_is_noticed_though_bytes_are_here(pair: Pair) -> None:
    near, far = pair
    await near.send_all(b"here")
    with trio.CancelScope() as scope:
        scope.cancel()

        await far.receive_some()

    assert scope.cancelled_caught


async def test_a_cancelled_send_ends_though_there_is_room(pair: Pair) -> None:
    near, _ = pair
    with trio.CancelScope() as scope:
        scope.cancel()

        await near.send_all(b"x")

    assert scope.cancelled_caught


async def test_the_end_is_received_as_nothing(pair: Pair) -> None:
    near, far = pair
    await near.aclose()

    assert await far.receive_some() == b""


async def test_sending_to_one_who_is_gone_is_broken(pair: Pair) -> None:
    near, far = pair
    await far.aclose()

    with pytest.raises(trio.BrokenResourceError):
        await near.send_all(b"x")


async def test_a_closed_side_says_so(pair: Pair) -> None:
    near, _ = pair
    await near.aclose()
    await near.aclose()

    with pytest.raises(trio.ClosedResourceError):
        await near.send_all(b"x")
    with pytest.raises(trio.ClosedResourceError):
        await near.receive_some()
    with pytest.raises(trio.ClosedResourceError):
        await near.wait_send_all_might_not_block()


async def test_closing_wakes_whoever_waits_for_bytes(pair: Pair) -> None:
    near, _ = pair
    ended: list[str] = []

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await near.receive_some()
        ended.append("woken")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await near.aclose()

    assert ended == ["woken"]


async def test_room_to_send_is_waited_for(pair: Pair) -> None:
    near, far = pair
    with suppress(BlockingIOError):
        while True:
            near.socket.send(LARGE)
    freed: list[str] = []

    async def wait() -> None:
        await near.wait_send_all_might_not_block()
        freed.append("there is room")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert not freed

        await far.receive_some(len(LARGE))

    assert freed


async def test_a_crowd_at_the_door_lets_others_run(listening: socket.socket) -> None:
    listener = LocalListener(listening)
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(10)]
    for each in crowd:
        each.connect(listening.getsockname())
    turns: list[str] = []

    async def accept() -> None:
        for _ in crowd:
            stream = await listener.accept()
            turns.append("in")
            await stream.aclose()

    async def other() -> None:
        while turns.count("in") < len(crowd):
            turns.append("other")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        nursery.start_soon(other)
    for each in crowd:
        each.close()

    assert "in in in" not in " ".join(turns)


async def test_closing_the_door_wakes_whoever_waits_at_it(
    listening: socket.socket,
) -> None:
    listener = LocalListener(listening)
    ended: list[str] = []

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await listener.accept()
        ended.append("woken")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await listener.aclose()

    assert ended == ["woken"]


async def test_who_had_knocked_at_a_replaced_socket_is_let_in_first(
    listening: socket.socket, tmp_path: Path
) -> None:
    listener = LocalListener(listening)
    second = socket.socket(socket.AF_UNIX)
    second.bind(str(tmp_path / "second"))
    second.listen(64)
    early, late = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    with second, early, late:
        early.connect(str(tmp_path / "s"))
        early.send(b"early")
        listener.replace(second)
        late.connect(str(tmp_path / "second"))
        late.send(b"late")

        for words in (b"early", b"late"):
            async with await listener.accept() as accepted:
                assert await accepted.receive_some() == words
        await listener.aclose()


async def test_a_waiting_accept_goes_on_at_the_socket_that_was_put_in_place(
    listening: socket.socket, tmp_path: Path
) -> None:
    listener = LocalListener(listening)
    second = socket.socket(socket.AF_UNIX)
    second.bind(str(tmp_path / "second"))
    second.listen(64)
    accepted: list[LocalStream] = []

    async def accept() -> None:
        accepted.append(await listener.accept())

    with second, socket.socket(socket.AF_UNIX) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            await trio.testing.wait_all_tasks_blocked()
            listener.replace(second)
            client.connect(str(tmp_path / "second"))
        assert listening.fileno() == -1
        for stream in accepted:
            await stream.aclose()
        await listener.aclose()


async def test_who_had_knocked_is_closed_with_the_listener(
    listening: socket.socket, tmp_path: Path
) -> None:
    listener = LocalListener(listening)
    second = socket.socket(socket.AF_UNIX)
    second.bind(str(tmp_path / "second"))
    second.listen(64)
    with second, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "s"))
        listener.replace(second)
        await listener.aclose()

        assert client.recv(1) == b""
