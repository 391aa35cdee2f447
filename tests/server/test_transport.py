"""Connections: bounded in number and in patience."""

from __future__ import annotations

import io
from pathlib import Path
from typing import cast

import pytest
import trio
from starlette.applications import Starlette

from bridge.log import open_log
from bridge.server.limits import Settings
from bridge.server.listening import open_listener
from bridge.server.transport import BoundedListener, serve_http
from tests.fakes.clock import FakeClock
from tests.fakes.message_server import BRIDGE, NET_S, Served, good


def listening(folder: Path, settings: Settings) -> BoundedListener:
    listener = open_listener(folder / "server.sock")
    listener.setblocking(False)
    return BoundedListener(
        trio.SocketListener(trio.socket.from_stdlib_socket(listener)),
        settings,
        open_log(io.StringIO(), FakeClock()),
    )


async def test_a_write_that_is_not_taken_ends_the_connection(tmp_path: Path) -> None:
    bounded = listening(tmp_path, Settings(send_wait_s=0.02))
    client = await trio.open_unix_socket(str(tmp_path / "server.sock"))
    accepted = await bounded.accept()

    # More than a socket's buffer takes, and nobody reads it.
    with trio.fail_after(NET_S), pytest.raises(trio.BrokenResourceError):
        await accepted.send_all(b"x" * 10_000_000)

    with pytest.raises(trio.ClosedResourceError):
        await accepted.receive_some()
    await bounded.wait_until_none()
    await client.aclose()
    await bounded.aclose()


async def test_an_answer_and_its_end_may_meet(tmp_path: Path) -> None:
    bounded = listening(tmp_path, Settings())
    client = await trio.open_unix_socket(str(tmp_path / "server.sock"))
    accepted = await bounded.accept()

    answer = b"x" * 1_000_000  # more than is taken at once
    received = b""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(accepted.send_all, answer)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(accepted.send_eof)
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(NET_S):
            while chunk := await client.receive_some():
                received += chunk

    assert received == answer
    await bounded.abort()
    await client.aclose()
    await bounded.aclose()


async def test_a_connection_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    log = io.StringIO()
    listener = open_listener(tmp_path / "server.sock")
    listener.setblocking(False)
    listening_ = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    stopping = trio.Event()
    path = str(tmp_path / "server.sock")
    async with trio.open_nursery() as nursery:
        await nursery.start(
            serve_http,
            Starlette(),
            cast("trio.SocketListener", Failing(listening_)),
            Settings(),
            stopping,
            open_log(log, FakeClock()),
        )
        first, second = [await trio.open_unix_socket(path) for _ in range(2)]
        with trio.fail_after(NET_S):
            assert await first.receive_some() == b""
            await second.send_all(b"GET / HTTP/1.1\r\nHost: bridge\r\n\r\n")
            assert (await second.receive_some()).startswith(b"HTTP/1.1 404")
        stopping.set()
    for client in (first, second):
        await client.aclose()

    assert "connection_failed" in log.getvalue()


HELLO = b"GET /hello HTTP/1.1\r\nHost: bridge\r\n\r\n"


@pytest.mark.parametrize("said", [b"", HELLO, HELLO[:20]])
async def test_a_client_that_goes_leaves_its_place_at_once(
    tmp_path: Path, said: bytes
) -> None:
    bounded = listening(tmp_path, Settings(connections=2))
    path = str(tmp_path / "server.sock")
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            serve_http,
            Starlette(),
            cast("trio.SocketListener", bounded),
            Settings(),
            stopping,
            open_log(io.StringIO(), FakeClock()),
        )
        for _ in range(10):
            client = await trio.open_unix_socket(path)
            with trio.fail_after(NET_S):
                if said:
                    await client.send_all(said)
                if said == HELLO:
                    assert await client.receive_some()
            await client.aclose()
            with trio.fail_after(NET_S):
                await bounded.wait_until_none()
        stopping.set()


class Failing:
    """A listener whose first connection raises what nobody expects."""

    def __init__(self, listener: trio.SocketListener) -> None:
        self._listener = listener
        self._is_first = True

    async def accept(self) -> object:
        accepted = await self._listener.accept()
        is_first, self._is_first = self._is_first, False
        return Unreadable(accepted) if is_first else accepted

    async def aclose(self) -> None:
        await self._listener.aclose()


class Unreadable:
    """A connection of which nothing can be read."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.socket = stream.socket
        self.aclose = stream.aclose
        self.send_eof = stream.send_eof

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("not the client's fault")


async def test_a_connection_too_many_is_closed_at_once(tmp_path: Path) -> None:
    bounded = listening(tmp_path, Settings(connections=1))
    path = str(tmp_path / "server.sock")
    first = await trio.open_unix_socket(path)
    accepted = await bounded.accept()
    second = await trio.open_unix_socket(path)
    third_accepted: list[object] = []

    async def accept_again() -> None:
        third_accepted.append(await bounded.accept())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept_again)
        with trio.fail_after(NET_S):
            assert await second.receive_some() == b""
        assert not third_accepted
        await accepted.aclose()
        third = await trio.open_unix_socket(path)
        await trio.testing.wait_all_tasks_blocked()

    assert len(third_accepted) == 1
    await bounded.abort()
    for stream in (first, second, third):
        await stream.aclose()
    await bounded.aclose()


async def test_an_aborted_listener_has_no_connection_left(tmp_path: Path) -> None:
    bounded = listening(tmp_path, Settings())
    client = await trio.open_unix_socket(str(tmp_path / "server.sock"))
    await bounded.accept()

    await bounded.abort()

    with trio.fail_after(NET_S):
        await bounded.wait_until_none()
        assert await client.receive_some() == b""
    await client.aclose()
    await bounded.aclose()


@pytest.mark.parametrize(
    "noise",
    [b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"x" * 70_000],
)
async def test_noise_is_cut_off_and_others_are_served(
    server: Served, noise: bytes
) -> None:
    client = await trio.open_unix_socket(str(server.folder / "server.sock"))
    with trio.fail_after(NET_S):
        try:
            await client.send_all(noise)
            await client.send_eof()
            while await client.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
    await client.aclose()

    assert good(await server.client.get(f"{BRIDGE}/hello", headers=server.headers))


@pytest.mark.parametrize("settings", [Settings(keep_alive_s=0.02)])
async def test_a_connection_that_says_nothing_is_closed(
    server: Served, settings: Settings
) -> None:
    client = await trio.open_unix_socket(str(server.folder / "server.sock"))
    await client.send_all(b"GET / HTT")

    with trio.fail_after(NET_S):
        assert await client.receive_some() == b""
    await client.aclose()
