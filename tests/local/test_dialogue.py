"""One hook's dialogue: only the client's own last word says what was printed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.testing

from bridge.core.render import Print
from bridge.errors import Invalid, Unavailable
from bridge.local.connection import Connection
from bridge.local.dialogue import HookDialogue, Outcome
from bridge.peer import Peer
from tests.fakes.memory_door import MemoryStream

OFFER = Print(text=b"from alice")
OFFER_FRAME = b"AW1 print 0 stdout 10\nfrom alice"


async def dialogue_after(request: bytes) -> tuple[HookDialogue, MemoryStream]:
    near, far = trio.testing.memory_stream_pair()
    await near.send_all(request)
    connection = Connection(far, Peer(uid=1, pid=2), trio.current_time() + 5)
    await connection.receive_first_header()
    dialogue = HookDialogue(connection)
    return dialogue, near


async def ready() -> tuple[HookDialogue, MemoryStream]:
    dialogue, near = await dialogue_after(b"AW1 hook claude Stop 2\n{}")
    await dialogue.receive()
    return dialogue, near


async def test_the_stdin_arrives_verbatim() -> None:
    dialogue, _ = await dialogue_after(b"AW1 hook codex Stop 6\n\xff{}\n\0\n")

    assert (dialogue.provider, dialogue.event) == ("codex", "Stop")
    assert dialogue.peer == Peer(uid=1, pid=2)
    assert await dialogue.receive() == b"\xff{}\n\0\n"


async def test_eight_mebibytes_are_read_and_one_byte_more_is_not() -> None:
    limit = 8 * 1024 * 1024
    dialogue, near = await dialogue_after(b"AW1 hook claude Stop %d\n" % limit)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(near.send_all, b"x" * limit)
        assert len(await dialogue.receive()) == limit

    dialogue, _ = await dialogue_after(b"AW1 hook claude Stop %d\n" % (limit + 1))
    with pytest.raises(Invalid):
        await dialogue.receive()


async def test_a_truncated_stdin_is_invalid() -> None:
    dialogue, near = await dialogue_after(b"AW1 hook claude Stop 9\n{")
    await near.send_stream.aclose()

    with pytest.raises(Invalid):
        await dialogue.receive()


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        (b"AW1 printed 0\n", Outcome.PRINTED),
        (b"AW1 unprinted 0\n", Outcome.UNPRINTED),
        (b"AW1 printed 0 more words\n", Outcome.PRINTED),
        (b"AW1 printed 1\nx", Outcome.UNKNOWN),
        (b"AW1 reply 0\n", Outcome.UNKNOWN),
        (b"printed\n", Outcome.UNKNOWN),
        (b"AW1 prin", Outcome.UNKNOWN),
        (b"", Outcome.UNKNOWN),
    ],
)
async def test_the_clients_last_word_decides(word: bytes, outcome: Outcome) -> None:
    dialogue, near = await ready()

    async def client() -> None:
        assert await near.receive_some() == OFFER_FRAME
        await near.send_all(word)
        await near.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(client)
        assert await dialogue.answer(OFFER) == outcome


async def test_a_word_that_comes_in_pieces_is_read() -> None:
    dialogue, near = await ready()

    async def client() -> None:
        for byte in b"AW1 printed 0\n":
            await near.send_all(bytes([byte]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(client)
        assert await dialogue.answer(OFFER) == Outcome.PRINTED


async def test_a_client_without_a_last_word_is_unknown_in_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    dialogue, _ = await ready()
    start = trio.current_time()

    assert await dialogue.answer(OFFER) == Outcome.UNKNOWN
    assert 0 < trio.current_time() - start < 3


async def test_a_failed_send_is_followed_by_reading_the_last_word() -> None:
    dialogue, near = await ready()
    await near.send_all(b"AW1 unprinted 0\n")
    await near.receive_stream.aclose()

    assert await dialogue.answer(OFFER) == Outcome.UNPRINTED


async def test_a_client_that_never_reads_is_given_up_in_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    near, far = trio.testing.lockstep_stream_pair()  # a pipe that holds nothing
    async with trio.open_nursery() as nursery:
        nursery.start_soon(near.send_all, b"AW1 hook claude Stop 0\n")
        connection = Connection(far, Peer(uid=1, pid=2), trio.current_time() + 5)
        await connection.receive_first_header()
    dialogue = HookDialogue(connection)
    start = trio.current_time()

    assert await dialogue.answer(OFFER) == Outcome.UNKNOWN
    assert trio.current_time() - start < 10


async def test_a_host_that_takes_silence_ill_is_told_what_stands_for_it() -> None:
    dialogue, near = await ready()
    dialogue.nothing = Print(text=b"{}")

    await dialogue.wait(2, Print())
    assert await near.receive_some() == b"AW1 wait 2 0 stdout 2\n{}"
    await dialogue.wait(12, Print(text=b"later"))
    assert await near.receive_some() == b"AW1 wait 12 0 stdout 5\nlater"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dialogue.silence)
        assert await near.receive_some() == b"AW1 print 0 stdout 2\n{}"
        await near.send_all(b"AW1 printed 0\n")


async def test_nothing_is_printed_past_the_promised_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    dialogue, near = await ready()
    await trio.sleep(0.31)

    assert dialogue.is_late
    assert await dialogue.answer(OFFER) == Outcome.UNPRINTED
    assert near.receive_stream.put_data is not None
    with trio.move_on_after(1) as nothing_came:
        await near.receive_some()
    assert nothing_came.cancelled_caught


async def test_a_wait_buys_time_and_says_what_else_to_print(
    autojump_clock: trio.testing.MockClock,
) -> None:
    dialogue, near = await ready()
    await dialogue.wait(12, Print(text=b"still working"))
    assert await near.receive_some() == b"AW1 wait 12 0 stdout 13\nstill working"
    await trio.sleep(11)
    assert not dialogue.is_late
    await near.send_all(b"AW1 printed 0\n")

    assert await dialogue.answer(OFFER) == Outcome.PRINTED

    await trio.sleep(2)
    assert dialogue.is_late


async def test_a_wait_for_a_client_that_left_is_unavailable() -> None:
    dialogue, near = await ready()
    await near.aclose()

    with pytest.raises(Unavailable):
        await dialogue.wait(2, Print())


async def leave_early(near: MemoryStream) -> None:
    await near.aclose()


async def stay(near: MemoryStream) -> None:
    return


@pytest.mark.parametrize("client", [stay, leave_early])
async def test_silence_is_one_frame_and_no_waiting(
    client: Callable[[MemoryStream], object],
) -> None:
    dialogue, near = await ready()
    if client is leave_early:
        await near.aclose()
    with trio.fail_after(1):
        await dialogue.silence()
    if client is stay:
        assert await near.receive_some() == b"AW1 print 0 stdout 0\n"
