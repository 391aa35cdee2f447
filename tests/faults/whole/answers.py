"""The answers of the machines' message server, good and bad, as httpx takes them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import msgspec
import trio

RETRY_AFTER_S = 7
# What a request can meet. "lost" and "slow" are done first, and then not told.
FAULTS = (
    "unreachable",
    "lost",
    "slow",
    "broken",
    "busy",
    "limited",
    "garbage",
)
# What only a submission can meet.
SEND_FAULTS = (*FAULTS, "refused", "conversation", "held")
_STATUS = {"broken": 500, "busy": 503, "limited": 429, "conversation": 429}


class Body(httpx.AsyncByteStream):
    """The bytes of one answer as they come."""

    def __init__(self, chunks: trio.MemoryReceiveChannel[bytes | Exception]) -> None:
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._chunks.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise StopAsyncIteration from None
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    async def aclose(self) -> None:
        """See httpx.AsyncByteStream."""
        self._chunks.close()


def failed(kind: str) -> httpx.Response:
    if kind == "garbage":
        html = {"content-type": "text/html"}
        return httpx.Response(200, headers=html, stream=whole(b"<p>Log in</p>"))
    if kind == "refused":
        return as_error(422, "message_length")
    if kind == "held":
        return as_error(409, "held")
    code = "conversation_rate" if kind == "conversation" else kind
    reply = as_error(_STATUS[kind], code)
    if kind in ("limited", "conversation"):
        reply.headers["retry-after"] = str(RETRY_AFTER_S)
    return reply


class Once(httpx.AsyncByteStream):
    """A body in one piece, which leaves no generator behind."""

    def __init__(self, content: bytes) -> None:
        self._left = [content]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


def whole(content: bytes) -> httpx.AsyncByteStream:
    return Once(content)


def as_json(content: object, status: int = 200) -> httpx.Response:
    return httpx.Response(status, stream=whole(msgspec.json.encode(content)))


def as_error(status: int, code: str, **details: object) -> httpx.Response:
    error = {"code": code, "message": f"no: {code}.", **details}
    return as_json({"error": error}, status)
