"""A message server that says what a test tells it to, without a network.

It answers each request with the next scripted reply, and keeps what was asked.
httpx's own timeouts do not reach it, so only our deadlines are at work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, TypeAlias

import httpx
import msgspec
import trio

Chunk: TypeAlias = "bytes | float | Exception"
Reply: TypeAlias = (
    "httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]"
)
HANG = float("inf")


class ScriptedBytes(httpx.AsyncByteStream):
    """Bytes, pauses in seconds, and at last perhaps an error."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = chunks
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            if isinstance(chunk, float):
                await trio.sleep(chunk)
            else:
                yield chunk

    async def aclose(self) -> None:
        self.is_closed = True


class ScriptedServer(httpx.AsyncBaseTransport):
    """See the module; the last reply is repeated."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []
        self.delay_s = 0.0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        if self.delay_s:
            await trio.sleep(self.delay_s)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply(request) if callable(reply) else reply

    def asked(self, index: int = -1) -> Any:
        """The JSON body of a request."""
        return msgspec.json.decode(self.requests[index].content)

    def paths(self) -> list[str]:
        """Method and path of every request."""
        return [f"{each.method} {each.url.path}" for each in self.requests]


def said(
    content: object, status: int = 200, headers: dict[str, str] | None = None
) -> httpx.Response:
    """A JSON answer."""
    return httpx.Response(status, content=msgspec.json.encode(content), headers=headers)


def refused(
    status: int, code: str, headers: dict[str, str] | None = None, **details: object
) -> httpx.Response:
    """An error answer in the server's form."""
    error = {"code": code, "message": f"no: {code}.", **details}
    return said({"error": error}, status, headers)


def stream(
    chunks: Iterable[Chunk],
    kind: str = "text/event-stream",
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """An event stream."""
    return httpx.Response(
        status,
        headers={"content-type": kind, **(headers or {})},
        stream=ScriptedBytes(chunks),
    )
