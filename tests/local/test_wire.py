"""The framing: any bytes are a header or Invalid, and what we write is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.render import Print
from bridge.errors import Invalid
from bridge.local.wire import (
    HEADER_LIMIT,
    WORD_COUNTS,
    Header,
    Incoming,
    format_frame,
    format_print,
    format_wait,
    parse_header,
)

WORD = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1)


@pytest.mark.parametrize(
    ("line", "header"),
    [
        (b"AW1 hook claude Stop 12", Header("hook", ("claude", "Stop"), 12)),
        (b"AW1 call 0", Header("call", (), 0)),
        (b"AW1 mcp codex 0", Header("mcp", ("codex",), 0)),
        (b"AW1 route pi s-1 0", Header("route", ("pi", "s-1"), 0)),
        (b"AW1 wait 2 0 stdout 5", Header("wait", ("2", "0", "stdout"), 5)),
        (b"AW1 print 2 stderr 7", Header("print", ("2", "stderr"), 7)),
        (b"AW1 printed 0", Header("printed", (), 0)),
        (b"AW1 unprinted 0", Header("unprinted", (), 0)),
        (b"AW1 reply 2", Header("reply", (), 2)),
        (
            b"AW1 hook claude Stop 12 and more",
            Header("hook", ("claude", "Stop"), 12, ("and", "more")),
        ),
        (b"AW1 mcp claude 0 channel", Header("mcp", ("claude",), 0, ("channel",))),
        (b"AW1 call 0 ", Header("call", (), 0)),
        (b"AW1 call 0009999999", Header("call", (), 9_999_999)),
    ],
)
def test_released_headers_are_read_for_ever(line: bytes, header: Header) -> None:
    assert parse_header(line) == header


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"AW1",
        b"AW1 ",
        b"AW2 call 0",
        b"aw1 call 0",
        b"GET / HTTP/1.1",
        b"AW1 dance 0",
        b"AW1 call",
        b"AW1 call -1",
        b"AW1 call +1",
        b"AW1 call 1.0",
        b"AW1 call 1_000",
        b"AW1 call 12345678901",
        "AW1 call \u0661".encode(),
        b"AW1 call  0",
        b"AW1 hook claude 5",
        b"AW1 hook claude  5",
        b"AW1 hook cl\x01ude Stop 5",
        b"AW1 hook claude Stop five",
        b"\xff\xfe",
        b"AW1 call 0\r",
    ],
)
def test_anything_else_is_invalid(line: bytes) -> None:
    with pytest.raises(Invalid):
        parse_header(line)


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_any_bytes_in_any_pieces_are_a_header_or_invalid(pieces: list[bytes]) -> None:
    incoming = Incoming()
    try:
        for piece in pieces:
            incoming.feed(piece)
            while (header := incoming.take_header()) is not None:
                assert header.verb in WORD_COUNTS
                assert header.length >= 0
            assert len(incoming) < HEADER_LIMIT
    except Invalid:
        pass


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(WORD_COUNTS)), st.lists(WORD), st.binary()),
        max_size=4,
    ),
    st.integers(min_value=1, max_value=64),
)
def test_frames_survive_any_cut(
    sent: list[tuple[str, list[str], bytes]], cut: int
) -> None:
    frames = []
    wire = b""
    for verb, words, body in sent:
        exact = tuple((words * 3)[: WORD_COUNTS[verb]])
        if len(exact) < WORD_COUNTS[verb] or sum(map(len, exact)) > 200:
            continue
        frames.append((Header(verb, exact, len(body)), body))
        wire += format_frame(verb, exact, body)
    incoming = Incoming()
    seen = []
    header = None
    for start in range(0, len(wire), cut):
        incoming.feed(wire[start : start + cut])
        while True:
            header = header or incoming.take_header()
            body_or_none = incoming.take_body(header.length) if header else None
            if header is None or body_or_none is None:
                break
            seen.append((header, body_or_none))
            header = None

    assert seen == frames
    assert incoming.take_rest() == b""


def test_a_header_of_the_limit_is_read_and_one_byte_more_is_not() -> None:
    line = b"AW1 mcp " + b"x" * (HEADER_LIMIT - len(b"AW1 mcp  0\n")) + b" 0\n"
    assert len(line) == HEADER_LIMIT

    incoming = Incoming()
    incoming.feed(line)
    assert incoming.take_header() is not None

    longer = Incoming()
    longer.feed(line.replace(b"x ", b"xx "))
    with pytest.raises(Invalid, match="longer than 256"):
        longer.take_header()


def test_bytes_after_a_header_are_kept_for_their_reader() -> None:
    incoming = Incoming()
    incoming.feed(b'AW1 mcp claude 0\n{"jsonrpc"')

    assert incoming.take_header() == Header("mcp", ("claude",), 0)
    assert incoming.take_rest() == b'{"jsonrpc"'
    assert len(incoming) == 0


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("dance", ()),
        ("hook", ("claude",)),
        ("hook", ("claude", "Stop", "more")),
        ("hook", ("claude", "St op")),
        ("hook", ("claude", "St\nop")),
        ("hook", ("cläude", "Stop")),
        ("mcp", ("x" * 300,)),
        ("mcp", ("",)),
    ],
)
def test_a_header_that_could_not_be_read_back_is_not_written(
    verb: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(Invalid):
        format_frame(verb, words)


def test_what_a_hook_client_is_told_is_byte_for_byte() -> None:
    assert format_print(Print()) == b"AW1 print 0 stdout 0\n"
    assert format_print(Print(2, "stderr", b"no\n")) == b"AW1 print 2 stderr 3\nno\n"
    assert format_wait(12, Print(text=b"working")) == b"AW1 wait 12 0 stdout 7\nworking"


def test_there_are_two_streams_to_print_to() -> None:
    with pytest.raises(Invalid):
        format_print(Print(stream="log"))
