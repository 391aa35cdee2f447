"""How a stream ends, or does not begin, over a scripted server."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from io import StringIO

import httpx
import pytest
import trio

from bridge.errors import Invalid, Refused, Unavailable
from bridge.log import open_log
from bridge.upstream.bounded import FRAME_LIMIT_BYTES
from bridge.upstream.stream import read_stream
from bridge.upstream.stream_events import (
    StreamEvent,
)
from tests.fakes.scripted_server import (
    HANG,
    Answer,
    Chunk,
    ScriptedServer,
    refused,
    said,
    stream,
)
from tests.upstream.callers import Callers
from tests.upstream.following import PLACE, follow, frame

# ---- ends ----------------------------------------------------------------------------


async def test_the_end_of_the_body_is_unavailable(calling: Callers) -> None:
    followed = await follow(await calling(ScriptedServer(stream([frame(1)]))))

    assert followed.numbers() == [1]
    assert isinstance(followed.error, Unavailable)
    assert followed.error.code == "stream_ended"


async def test_silence_for_25_seconds_ends_the_stream(
    calling: Callers, autojump_clock: trio.testing.MockClock
) -> None:
    chunks: list[Chunk] = [frame(1), 20.0, b": ping\n\n", HANG]
    followed = await follow(await calling(ScriptedServer(stream(chunks))))

    assert isinstance(followed.error, Unavailable)
    assert followed.error.code == "stream_silent"
    assert trio.current_time() == 45


async def test_a_server_that_does_not_answer_is_given_10_seconds(
    calling: Callers, autojump_clock: trio.testing.MockClock
) -> None:
    server = ScriptedServer(stream([]))
    server.delay_s = HANG
    followed = await follow(await calling(server))

    assert isinstance(followed.error, Unavailable)
    assert trio.current_time() == 10


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("closed"),
        OSError("AF_UNIX path too long"),
    ],
)
async def test_a_network_that_fails_is_unavailable(
    calling: Callers, error: Exception
) -> None:
    followed = await follow(await calling(ScriptedServer(error)))

    assert isinstance(followed.error, Unavailable)
    assert followed.events == []


async def test_a_reset_in_the_middle_keeps_what_was_whole(calling: Callers) -> None:
    chunks: list[Chunk] = [frame(1), frame(2)[:30], httpx.ReadError("reset")]
    followed = await follow(await calling(ScriptedServer(stream(chunks))))

    assert followed.numbers() == [1]
    assert isinstance(followed.error, Unavailable)


async def test_an_event_over_the_limit_closes_the_stream(calling: Callers) -> None:
    chunks: list[Chunk] = [frame(1), b"data: " + b"x" * FRAME_LIMIT_BYTES, HANG]
    followed = await follow(await calling(ScriptedServer(stream(chunks))))

    assert followed.numbers() == [1]
    assert isinstance(followed.error, Invalid)


@pytest.mark.parametrize(
    "piece", [b"x" * 65536, b"data: x\n" * 8192, b": x\n" * 16384, b"id: 1\n" * 9000]
)
async def test_an_endless_event_costs_no_more_than_its_limit(
    calling: Callers, piece: bytes
) -> None:
    """What is behind the bound is neither read nor kept."""
    offered = 0

    def endless() -> Iterator[Chunk]:
        nonlocal offered
        for _ in range(64 * FRAME_LIMIT_BYTES // len(piece)):
            offered += len(piece)
            yield piece
            yield 0.0  # as a network that is waited for

    caller = await calling(ScriptedServer(stream(endless())))
    tracemalloc.start()
    followed = await follow(caller)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert isinstance(followed.error, Invalid)
    assert offered <= FRAME_LIMIT_BYTES + 2 * len(piece)
    # A list of short lines costs some times its bytes.
    assert peak < 16 * FRAME_LIMIT_BYTES


async def test_a_slow_reader_stops_the_reading_not_the_stream(
    calling: Callers, autojump_clock: trio.testing.MockClock
) -> None:
    """Silence is counted while waiting for the server, not for ourselves."""
    caller = await calling(ScriptedServer(stream([frame(1), frame(2)])))
    sender, receiver = trio.open_memory_channel[StreamEvent](0)
    log = open_log(StringIO(), caller.clock)
    got = 0
    async with trio.open_nursery() as nursery, receiver:

        async def read() -> None:
            with pytest.raises(Unavailable, match="ended"):
                await read_stream(caller, PLACE, sender, log)
            sender.close()

        nursery.start_soon(read)
        async for _ in receiver:
            got += 1
            await trio.sleep(60)
    assert got == 3


async def test_a_cancelled_stream_closes_its_response(calling: Callers) -> None:
    server = ScriptedServer(stream([frame(1), HANG]))
    caller = await calling(server)
    sender, receiver = trio.open_memory_channel[StreamEvent](9)
    async with trio.open_nursery() as nursery:
        log = open_log(StringIO(), caller.clock)
        nursery.start_soon(read_stream, caller, PLACE, sender, log)
        await receiver.receive()
        await receiver.receive()
        nursery.cancel_scope.cancel()

    assert [body.is_closed for body in server.bodies] == [True]


# ---- answers that are no stream ------------------------------------------------


@pytest.mark.parametrize("status", [403, 404, 409, 410])
async def test_a_refused_stream_is_not_to_be_opened_again(
    calling: Callers, status: int
) -> None:
    reply = refused(status, "gone", state="replaced")
    followed = await follow(await calling(ScriptedServer(reply)))

    assert isinstance(followed.error, Refused)
    assert followed.error.status == status
    assert followed.error.code == "gone"
    assert followed.error.details == {"state": "replaced"}
    assert followed.events == []


async def test_a_refused_token_without_another_is_refused(calling: Callers) -> None:
    server = ScriptedServer(refused(401, "invalid_token"))
    followed = await follow(await calling(server))

    assert isinstance(followed.error, Refused)
    assert followed.error.status == 401
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "floor"),
    [
        (refused(429, "slow", {"Retry-After": "7"}), 7.0),
        (refused(503, "stopping", {"Retry-After": "999999"}), 900.0),
        (refused(503, "stopping", {"Retry-After": "junk"}), None),
        (refused(503, "stopping"), None),
        (said("x", 500), None),
        (Answer(502, {}, [b"<html>"]), None),
    ],
)
async def test_a_busy_server_is_unavailable_with_its_own_floor(
    calling: Callers, reply: Answer, floor: float | None
) -> None:
    followed = await follow(await calling(ScriptedServer(reply)))

    assert isinstance(followed.error, Unavailable)
    assert followed.error.retry_after_s == floor


@pytest.mark.parametrize(
    "reply",
    [
        stream([frame(1)], kind="text/html"),
        stream([frame(1)], kind=""),
        Answer(204),
        Answer(302, {"Location": "http://elsewhere/"}),
    ],
    ids=["html", "no kind", "204", "302"],
)
async def test_what_is_no_stream_is_unavailable_and_never_followed(
    calling: Callers, reply: Answer
) -> None:
    server = ScriptedServer(reply)
    followed = await follow(await calling(server))

    assert isinstance(followed.error, Unavailable)
    assert followed.events == []
    assert len(server.requests) == 1


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
async def test_a_compressed_stream_is_refused(calling: Callers, encoding: str) -> None:
    reply = stream([b"\x1f\x8b"], headers={"content-encoding": encoding})
    followed = await follow(await calling(ScriptedServer(reply)))

    assert isinstance(followed.error, Invalid)
