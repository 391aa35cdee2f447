"""One request and its answer, whoever asks.

Owns the deadline and the size limit of every call. Promises that each way of
failing is one of our errors, and that an answer is decoded or refused whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self, TypeVar

import httpx
import msgspec
import trio
from msgspec import Struct

from bridge.clock import Clock
from bridge.errors import Invalid
from bridge.upstream import failures
from bridge.upstream.bounded import abandon
from bridge.upstream.clients import CONNECT_S, Server

Answer = TypeVar("Answer")

CALL_DEADLINE_S = 10.0
BODY_LIMIT_BYTES = 16 * 1024 * 1024


class WholeBody(httpx.AsyncByteStream):
    """A request's body in one piece, read by an iterator that leaves nothing behind.

    httpx's own is a generator: one that is left half-read by a cancelled request
    is closed by the garbage collector, which trio warns of
    (test_a_cancelled_call_leaves_no_generator_behind).
    """

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._content)


class _Once:
    def __init__(self, content: bytes) -> None:
        self._left = [content]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


def with_whole_body(request: httpx.Request) -> httpx.Request:
    """The same request, whose body is a WholeBody."""
    request.stream = WholeBody(request.content)
    return request


class Question(Struct, frozen=True):
    """One call. `body` goes as JSON, `form` as an HTML form; one of them or none.

    `is_repeatable` is False when asking twice could do a thing twice, so that a
    lost answer must be told as Unknown.
    """

    method: str
    path: str
    query: Mapping[str, str | int] = msgspec.field(default_factory=dict)
    body: object = None
    form: Mapping[str, str] | None = None
    deadline_s: float = CALL_DEADLINE_S
    is_repeatable: bool = True


async def ask(
    server: Server,
    question: Question,
    into: type[Answer],
    clock: Clock,
    token: str = "",
) -> Answer:
    """Ask once, and decode the answer into `into`.

    Raises Unavailable (nothing happened, or it may be asked again), Unknown,
    Refused (with status and code) or Invalid.
    """
    with trio.move_on_after(question.deadline_s):
        reply, content = await _exchange(server, question, token)
        if reply.status_code != httpx.codes.OK:
            raise failures.from_reply(
                reply, content, clock.wall(), question.is_repeatable
            )
        return _decoded(content, into, question.is_repeatable)
    raise failures.lost(question.is_repeatable, f"{question.deadline_s:.0f} s passed")


async def _exchange(
    server: Server, question: Question, token: str
) -> tuple[httpx.Response, bytes]:
    request = _request(server.calls, question, token)
    try:
        async with _place(server):
            reply = await server.calls.send(request, stream=True)
            try:
                return reply, await read_capped(reply, BODY_LIMIT_BYTES)
            finally:
                await reply.aclose()
    except httpx.HTTPError as error:
        raise failures.from_exception(error, question.is_repeatable) from error
    except OSError as error:
        # A socket path that cannot be used is no httpx error.
        raise failures.not_reached(error) from error
    except Invalid as error:
        if question.is_repeatable:
            raise
        raise failures.lost(False, "an unusable answer") from error


@asynccontextmanager
async def _place(server: Server) -> AsyncIterator[None]:
    """Wait here, where a cancelled call leaves at once, and not in the pool."""
    with trio.move_on_after(CONNECT_S) as waiting:
        await server.places.acquire()
    if waiting.cancelled_caught:
        raise httpx.PoolTimeout("too many calls are under way")
    try:
        yield
    finally:
        server.places.release()


def _request(
    client: httpx.AsyncClient, question: Question, token: str
) -> httpx.Request:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    content = None
    if question.body is not None:
        content = msgspec.json.encode(question.body)
        headers["Content-Type"] = "application/json"
    request = client.build_request(
        question.method,
        question.path,
        params=dict(question.query) or None,
        content=content,
        data=None if question.form is None else dict(question.form),
        headers=headers,
    )
    return with_whole_body(request)


async def read_capped(reply: httpx.Response, limit_bytes: int) -> bytes:
    """The whole body as it was sent; raises Invalid past the limit or encoded."""
    if reply.headers.get("content-encoding", "identity") != "identity":
        raise failures.nonsense("an encoding that was not asked for")
    parts: list[bytes] = []
    size = 0
    chunks = reply.aiter_raw()
    async for part in chunks:
        size += len(part)
        if size > limit_bytes:
            await abandon(chunks)
            raise failures.nonsense(f"more than {limit_bytes} bytes")
        parts.append(part)
    return b"".join(parts)


def _decoded(content: bytes, into: type[Answer], is_repeatable: bool) -> Answer:
    try:
        return msgspec.json.decode(content, type=into)
    except (msgspec.DecodeError, RecursionError) as error:
        found = failures.nonsense(str(error))
        raise (found if is_repeatable else failures.lost(False, str(error))) from error
