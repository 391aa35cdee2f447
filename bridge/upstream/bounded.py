"""A stream with bounds, between httpx and the decoder of its events.

Promises that nothing behind it ever holds more than one frame of LIMIT bytes,
waits longer than the silence limit, or sees text that is not UTF-8 (whatever
the header says: the format allows no other). A byte order mark at the start is
taken away, since the decoder would lose the first event to it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator

import httpx
import trio

from bridge.errors import Invalid, Unavailable

FRAME_LIMIT_BYTES = 1024 * 1024

# Two heartbeats of 10 s may be lost before the stream counts as dead.
SILENCE_S = 25.0

_MARK = codecs.BOM_UTF8
_LINE_END = re.compile(rb"\r\n|\n|\r")


class FrameCounter:
    """Counts the bytes since the last blank line; lines end in CR, LF or CRLF."""

    def __init__(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._frame_bytes = 0
        self._line_bytes = 0
        self._is_after_return = False

    def count(self, chunk: bytes) -> None:
        """Take note of a chunk; raises Invalid when a frame grows too large."""
        start = 0
        for end in _LINE_END.finditer(chunk):
            # A CRLF that two chunks share ends one line, not two.
            is_second_half = (
                end.start() == 0 and self._is_after_return and end.group() == b"\n"
            )
            self._grow(end.end() - start)
            self._line_bytes += end.start() - start
            if not is_second_half:
                self._end_line()
            start = end.end()
        self._grow(len(chunk) - start)
        self._line_bytes += len(chunk) - start
        if chunk:
            self._is_after_return = chunk.endswith(b"\r")

    def _grow(self, count: int) -> None:
        self._frame_bytes += count
        if self._frame_bytes > self._limit_bytes:
            raise Invalid(
                "frame_too_big",
                f"The server's stream had more than {self._limit_bytes} bytes in one"
                " event; the stream was closed.",
                "The messages are still at the server and can be read explicitly.",
            )

    def _end_line(self) -> None:
        if self._line_bytes == 0:
            self._frame_bytes = 0
        self._line_bytes = 0


class BoundedText:
    """See the module. What httpx-sse reads of a response: headers and text.

    A class and not a generator, and ended by `stop`: a generator that is left
    half read is closed by the garbage collector, at any time and out of order.
    """

    def __init__(
        self,
        reply: httpx.Response,
        limit_bytes: int = FRAME_LIMIT_BYTES,
        silence_s: float = SILENCE_S,
    ) -> None:
        self.headers = reply.headers
        self._chunks = reply.aiter_raw()
        self._counter = FrameCounter(limit_bytes)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._silence_s = silence_s

    def aiter_text(self) -> BoundedText:
        """Itself: the text as it comes, in pieces of any size."""
        return self

    def __aiter__(self) -> BoundedText:
        """Itself."""
        return self

    async def __anext__(self) -> str:
        """The next piece; raises Invalid past a bound, Unavailable after silence."""
        while (chunk := await self._next()) is not None:
            self._counter.count(chunk)
            text = self._decoded(chunk)
            if text:
                return text
        raise StopAsyncIteration

    async def stop(self) -> None:
        """Read no more; the response may then be closed."""
        await abandon(self._chunks)

    async def _next(self) -> bytes | None:
        asked_at = trio.current_time()
        with trio.move_on_after(self._silence_s):
            chunk = await anext(self._chunks, None)
            # Race: a process that was stopped finds bytes in the kernel before it
            # finds its deadline; they are as old as the stop was long
            # (test_what_came_while_the_bridge_stood_still_is_not_heard).
            if trio.current_time() - asked_at <= self._silence_s:
                return chunk
        raise Unavailable(
            "stream_silent",
            f"The message server was silent for {self._silence_s:.0f} s.",
            "The stream is opened again.",
        )

    def _decoded(self, chunk: bytes) -> str:
        try:
            return self._decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raise Invalid(
                "not_utf8", "The server's stream is not UTF-8 text; it was closed."
            ) from error


async def abandon(chunks: AsyncIterator[bytes]) -> None:
    """End a body that is not read to its end.

    The generators below end only from the inside: a cancelled read unwinds all
    of them, where closing the outermost would leave the others to the collector.
    """
    with trio.CancelScope() as scope:
        scope.cancel()
        async for _ in chunks:
            pass
