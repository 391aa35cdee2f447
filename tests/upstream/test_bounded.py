"""The bounds of a stream: frame size, silence, text, and the byte order mark."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Iterable
from itertools import pairwise

import httpx
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import Invalid, Unavailable
from bridge.upstream.bounded import (
    FRAME_LIMIT_BYTES,
    SILENCE_S,
    BoundedText,
    FrameCounter,
)
from tests.fakes.scripted_server import HANG, Chunk, ScriptedBytes

STREAMS = st.lists(st.sampled_from([b"a", b":x", b"\r", b"\n", b"\r\n"])).map(b"".join)


def largest_frame(content: bytes) -> int:
    """The oracle: bytes from one blank line to the next, its end included."""
    largest = start = line_start = position = 0
    while position < len(content):
        width = 2 if content.startswith(b"\r\n", position) else 1
        is_end = content[position : position + 1] in (b"\r", b"\n")
        position += width if is_end else 1
        largest = max(largest, position - start)
        if is_end:
            if position - width == line_start:
                start = position
            line_start = position
    return largest


def is_refused(chunks: Iterable[bytes], limit_bytes: int) -> bool:
    counter = FrameCounter(limit_bytes)
    try:
        for chunk in chunks:
            counter.count(chunk)
    except Invalid:
        return True
    return False


@given(STREAMS, st.integers(1, 20))
def test_a_frame_is_refused_exactly_when_it_is_too_large(
    content: bytes, limit_bytes: int
) -> None:
    assert is_refused([content], limit_bytes) is (largest_frame(content) > limit_bytes)


@given(STREAMS, st.integers(1, 20), st.lists(st.integers(0, 60)))
def test_how_the_bytes_are_cut_into_chunks_changes_no_more_than_one_byte(
    content: bytes, limit_bytes: int, cuts: list[int]
) -> None:
    """Only the LF of a CRLF cut in half may count for the frame behind it."""
    edges = sorted({0, len(content), *(min(cut, len(content)) for cut in cuts)})
    chunks = [content[a:b] for a, b in pairwise(edges)]
    whole = largest_frame(content)

    if is_refused(chunks, limit_bytes):
        assert whole > limit_bytes - 1
    else:
        assert whole <= limit_bytes + 1


@pytest.mark.parametrize(
    "line", [b"data: x\n", b"x" * 1000, b": comment\n"], ids=["data", "line", "comment"]
)
def test_endless_lines_without_a_blank_one_end_the_stream(line: bytes) -> None:
    counter = FrameCounter()
    enough = FRAME_LIMIT_BYTES // len(line)
    for _ in range(enough):
        counter.count(line)

    with pytest.raises(Invalid, match="1048576 bytes"):
        counter.count(line)


def test_endless_keep_alives_are_no_frame() -> None:
    counter = FrameCounter(100)
    for _ in range(1000):
        counter.count(b": ping\n\n")


async def passed(chunks: Iterable[Chunk]) -> bytes:
    bounded = BoundedText(httpx.Response(200, stream=ScriptedBytes(chunks)))
    try:
        parts = [part async for part in bounded.aiter_text()]
    finally:
        await bounded.stop()
    return "".join(parts).encode()


MARKED = codecs.BOM_UTF8 + "data: é\n\n".encode()


@pytest.mark.parametrize("width", [1, 2, 3, 4, 100])
async def test_a_byte_order_mark_is_taken_away_however_it_is_cut(width: int) -> None:
    chunks = [MARKED[at : at + width] for at in range(0, len(MARKED), width)]

    assert await passed(chunks) == MARKED.removeprefix(codecs.BOM_UTF8)


@pytest.mark.parametrize(
    "content", [b"", b"d", "é\n".encode(), b"\n\n", "\ufb01".encode()]
)
async def test_what_is_no_mark_passes_as_it_is(content: bytes) -> None:
    chunks = [bytes([byte]) for byte in content]

    assert await passed(chunks) == content


async def test_only_the_first_mark_is_taken_away() -> None:
    assert await passed([codecs.BOM_UTF8 * 2]) == codecs.BOM_UTF8


@pytest.mark.parametrize("content", [b"\xff", b"data: \xc3(\n", b"\xed\xa0\x80"])
async def test_text_that_is_not_utf8_ends_the_stream(content: bytes) -> None:
    with pytest.raises(Invalid, match="UTF-8"):
        await passed([content])


async def test_a_character_cut_in_half_by_a_chunk_is_text() -> None:
    assert await passed([b"\xc3", b"\xa9"]) == "é".encode()


async def test_silence_ends_the_stream(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(Unavailable, match="silent for 25 s"):
        await passed([b": ping\n\n", HANG])
    assert trio.current_time() == SILENCE_S


async def test_any_byte_breaks_the_silence(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pings: list[Chunk] = [24.0, b":", 24.0, b"\n", 24.0]

    assert await passed(pings) == b":\n"
    assert trio.current_time() == 72


class AfterAStop(httpx.AsyncByteStream):
    """As the kernel does after SIGCONT: the bytes first, whatever the deadline."""

    def __init__(self, stopped_s: float) -> None:
        self._stopped_s = stopped_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with trio.CancelScope(shield=True):
            await trio.sleep(self._stopped_s)
        yield b"event: alive\n"


@pytest.mark.parametrize(("stopped_s", "is_heard"), [(20.0, True), (26.0, False)])
async def test_what_came_while_the_bridge_stood_still_is_not_heard(
    autojump_clock: trio.testing.MockClock, stopped_s: float, is_heard: bool
) -> None:
    bounded = BoundedText(httpx.Response(200, stream=AfterAStop(stopped_s)))
    if is_heard:
        assert await anext(bounded) == "event: alive\n"
    else:
        with pytest.raises(Unavailable, match="silent"):
            await anext(bounded)
    await bounded.stop()


async def test_a_stream_that_is_stopped_half_read_leaves_nothing_open() -> None:
    """Else the collector closes it, which warnings would show here."""
    below = ScriptedBytes([b"data: 1\n\n", HANG])
    bounded = BoundedText(httpx.Response(200, stream=below))
    assert await anext(bounded) == "data: 1\n\n"

    await bounded.stop()
    with pytest.raises(StopAsyncIteration):
        await anext(bounded)
