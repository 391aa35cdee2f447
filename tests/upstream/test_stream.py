"""One stream, cut and disturbed in every way, over a scripted server."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from itertools import pairwise

import httpx
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import AttachmentId, MessageId
from bridge.errors import BridgeError, Invalid, Refused, Unavailable
from bridge.log import open_log
from bridge.upstream.api import Caller
from bridge.upstream.bounded import FRAME_LIMIT_BYTES
from bridge.upstream.clients import ServerAddress, open_server
from bridge.upstream.credentials import FixedToken
from bridge.upstream.stream import StreamPlace, read_stream
from bridge.upstream.stream_events import (
    Alive,
    Arrived,
    LeaseChanged,
    Opened,
    ReceiptHeard,
    Retracted,
    Skipped,
    StreamEvent,
)
from tests.fakes.clock import FakeClock
from tests.fakes.scripted_server import (
    HANG,
    Answer,
    Chunk,
    ScriptedServer,
    refused,
    said,
    stream,
)
from tests.upstream.conftest import Callers

PLACE = StreamPlace(AttachmentId("att-1"), cursor=500_000_001, receipts_after=4)


def frame(number: int, text: str = "hello") -> bytes:
    sequence = 500_000_000 + number
    return (
        f'id: {sequence}\nevent: message\ndata: {{"message_id":"msg-{number}",'
        f'"sequence":{sequence},"inbox_id":"inbox-1","conversation_id":"c",'
        f'"sender":"alice","sender_provider":"codex","reply_address":"inbox-1",'
        f'"message":"{text}","sent_at":"2026-11-29T16:05:29Z"}}\n\n'
    ).encode()


class Followed:
    """What one stream gave, and how it ended."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []
        self.error: BridgeError | None = None
        self.log = StringIO()

    def numbers(self) -> list[int]:
        """Which messages arrived, in order."""
        found = [each for each in self.events if isinstance(each, Arrived)]
        return [each.message.sequence - 500_000_000 for each in found]


async def follow(caller: Caller, place: StreamPlace = PLACE) -> Followed:
    followed = Followed()
    sender, receiver = trio.open_memory_channel[StreamEvent](0)

    async def read() -> None:
        log = open_log(followed.log, caller.clock)
        async with sender:
            try:
                await read_stream(caller, place, sender, log)
            except BridgeError as error:
                followed.error = error

    async with trio.open_nursery() as nursery, receiver:
        nursery.start_soon(read)
        async for event in receiver:
            followed.events.append(event)
    return followed


async def follow_all(contents: Iterable[Iterable[Chunk]]) -> list[Followed]:
    """One stream for each content, without fixtures."""
    followed = []
    transport = ScriptedServer(stream([]))
    async with open_server(ServerAddress("http://bridge"), transport) as server:
        caller = Caller(server, FixedToken("t"), FakeClock())
        for chunks in contents:
            transport.answers = [stream(chunks)]
            followed.append(await follow(caller))
    return followed


# ---- what it says ----------------------------------------------------------------


async def test_every_event_arrives_typed_and_in_order(calling: Callers) -> None:
    chunks: list[Chunk] = [
        b'event: receipt\ndata: {"number":5,"message_id":"m",'
        b'"delivery":"admitted"}\n\n',
        b'event: alive\ndata: {"through":500000001}\n\n',
        frame(2),
        b'event: retract\ndata: {"message_ids":["msg-2"],"reason":"x"}\n\n',
        b'event: attachment\ndata: {"state":"replaced"}\n\n',
    ]
    followed = await follow(await calling(ScriptedServer(stream(chunks))))

    assert followed.error is None
    opened, receipt, alive, arrived, retracted, lease = followed.events
    assert isinstance(opened, Opened)
    assert receipt == ReceiptHeard(1000.0, 5, MessageId("m"), "admitted")
    assert alive == Alive(1000.0, 500_000_001)
    assert isinstance(arrived, Arrived)
    assert arrived.message.body == "hello"
    assert arrived.message.sender_provider == "codex"
    assert retracted == Retracted(1000.0, (MessageId("msg-2"),), "x")
    assert lease == LeaseChanged(1000.0, "replaced")


async def test_nothing_is_read_after_the_lease_changed(calling: Callers) -> None:
    chunks: list[Chunk] = [
        b'event: attachment\ndata: {"state":"revoked"}\n\n',
        frame(1),
        HANG,
    ]
    followed = await follow(await calling(ScriptedServer(stream(chunks))))

    assert followed.numbers() == []
    assert followed.error is None


async def test_the_request_says_where_to_start(calling: Callers) -> None:
    server = ScriptedServer(stream([]))
    await follow(await calling(server))
    [request] = server.requests

    assert request.url.path == "/api/external/v1/bridge/attachments/att-1/stream"
    assert dict(request.url.params) == {"messages": "on", "receipts_after": "4"}
    assert request.headers["last-event-id"] == "500000001"
    assert request.headers["authorization"] == "Bearer cnry-token"
    assert request.headers["accept-encoding"] == "identity"


async def test_without_a_cursor_or_room_it_says_so(calling: Callers) -> None:
    server = ScriptedServer(stream([]))
    await follow(
        await calling(server), StreamPlace(AttachmentId("att-1"), has_messages=False)
    )
    [request] = server.requests

    assert request.url.params["messages"] == "off"
    assert "last-event-id" not in request.headers


# ---- cuts and chunks ---------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 7, 10_000])
async def test_the_same_events_come_however_the_bytes_are_cut(
    calling: Callers, width: int
) -> None:
    content = frame(1) + b": ping\n\n" + frame(2, "caf\u00e9".encode().decode())
    chunks = [content[at : at + width] for at in range(0, len(content), width)]
    followed = await follow(await calling(ScriptedServer(stream(chunks))))

    assert followed.numbers() == [1, 2]


async def test_a_stream_cut_at_any_byte_gives_only_whole_events() -> None:
    content = frame(1) + frame(2)
    first_end = len(frame(1))
    cuts = range(len(content))
    for cut, followed in zip(
        cuts, await follow_all([content[:cut]] for cut in cuts), strict=True
    ):
        assert followed.numbers() == ([1] if cut >= first_end else [])
        assert isinstance(followed.error, Unavailable)


@given(st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(0, 700)))
def test_line_ends_of_any_kind_and_marks_change_nothing(
    end: bytes, cuts: list[int]
) -> None:
    content = b"\xef\xbb\xbf" + frame(1) + frame(2, "a\u2028b") + b": end\n\n"
    content = content.replace(b"\n", end)
    edges = sorted({0, len(content), *(min(cut, len(content)) for cut in cuts)})
    chunks = [content[a:b] for a, b in pairwise(edges)]
    [followed] = trio.run(follow_all, [chunks])

    assert followed.numbers() == [1, 2]
    last = followed.events[-1]
    assert isinstance(last, Arrived)
    assert last.message.body == "a\u2028b"


async def test_keep_alives_after_an_id_are_no_events(calling: Callers) -> None:
    chunks = [frame(1), b": ping\n\n", b"id: 500000009\n\n", b"\n\n"]
    followed = await follow(await calling(ScriptedServer(stream(chunks))))

    assert len(followed.events) == 2


async def test_a_charset_in_the_header_is_overruled(calling: Callers) -> None:
    reply = stream([frame(1, "\u00e9")], "text/event-stream; charset=latin-1")
    followed = await follow(await calling(ScriptedServer(reply)))
    last = followed.events[-1]

    assert isinstance(last, Arrived)
    assert last.message.body == "\u00e9"


# ---- what cannot be read -------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"event: message\nid: 500000007\ndata: {\n\n", 500_000_007),
        (b"event: message\nid: 500000007\ndata: {}\n\n", 500_000_007),
        (b"event: message\nid: junk\ndata: {}\n\n", 0),
        (b"event: message\nid: 99999999999999999\ndata: {}\n\n", 0),
        (frame(7).replace(b"id: 500000007", b"id: 500000008"), 500_000_008),
        (frame(7, "\\ud800"), 500_000_007),
        (frame(7).replace(b'"sequence":500000007', b'"sequence":-1'), 500_000_007),
        (b'id: 500000007\nevent: alive\ndata: {"through":9e99}\n\n', 0),
        (b"event: future\ndata: {}\n\n", 0),
        (b"data: {}\n\n", 0),
    ],
)
async def test_what_cannot_be_read_is_skipped_with_its_place(
    calling: Callers, content: bytes, place: int
) -> None:
    reply = stream([content, frame(9)])
    followed = await follow(await calling(ScriptedServer(reply)))
    skipped = followed.events[1]

    assert isinstance(skipped, Skipped)
    assert skipped.sequence == place
    assert followed.numbers() == [9]


async def test_an_unknown_event_is_logged_once_and_never_quoted(
    calling: Callers,
) -> None:
    chunks = [b'event: future\ndata: {"message":"cnry-body"}\n\n'] * 3
    followed = await follow(await calling(ScriptedServer(stream(chunks))))

    assert followed.log.getvalue().count("\n") == 1
    assert "future" in followed.log.getvalue()
    assert "cnry" not in followed.log.getvalue()


async def test_made_up_event_names_do_not_fill_the_log(calling: Callers) -> None:
    chunks = [f"event: e{number}\ndata: x\n\n".encode() for number in range(100)]
    followed = await follow(await calling(ScriptedServer(stream(chunks))))

    assert followed.log.getvalue().count("\n") == 20


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
