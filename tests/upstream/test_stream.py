"""One stream, cut and disturbed in every way, over a scripted server."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import AttachmentId, MessageId
from bridge.errors import Unavailable
from bridge.upstream.stream import StreamPlace
from bridge.upstream.stream_events import (
    Alive,
    Arrived,
    LeaseChanged,
    Opened,
    ReceiptHeard,
    Retracted,
    Skipped,
)
from tests.fakes.scripted_server import (
    HANG,
    Chunk,
    ScriptedServer,
    stream,
)
from tests.upstream.callers import Callers
from tests.upstream.following import follow, follow_all, frame

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
