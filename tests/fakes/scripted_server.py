"""A message server that says what a test tells it to, without a network.

It answers each request with the next scripted reply, and keeps what was asked.
httpx's own timeouts do not reach it, so only our deadlines are at work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx
import msgspec
import trio

Chunk: TypeAlias = "bytes | float | Exception"
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


@dataclass(frozen=True)
class Answer:
    """What the server says to one request."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Iterable[Chunk] = ()


class ScriptedServer(httpx.AsyncBaseTransport):
    """See the module; the last answer is repeated."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.bodies: list[ScriptedBytes] = []
        self.delay_s = 0.0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        if self.delay_s:
            await trio.sleep(self.delay_s)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        body = ScriptedBytes(answer.chunks)
        self.bodies.append(body)
        headers = dict(answer.headers)
        return httpx.Response(answer.status, headers=headers, stream=body)

    def asked(self, index: int = -1) -> Any:
        """The JSON body of a request."""
        return msgspec.json.decode(self.requests[index].content)

    def paths(self) -> list[str]:
        """Method and path of every request."""
        return [f"{each.method} {each.url.path}" for each in self.requests]


def said(
    content: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Answer:
    """A JSON answer."""
    return Answer(status, headers or {}, [msgspec.json.encode(content)])


def refused(
    status: int, code: str, headers: Mapping[str, str] | None = None, **details: object
) -> Answer:
    """An error answer in the server's form."""
    error = {"code": code, "message": f"no: {code}.", **details}
    return said({"error": error}, status, headers)


def stream(
    chunks: Iterable[Chunk],
    kind: str = "text/event-stream",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An event stream."""
    return Answer(200, {"content-type": kind, **(headers or {})}, chunks)
