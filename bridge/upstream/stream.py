"""One attachment's stream: one connection, from its opening to its end.

Promises typed events in the server's order through a channel, each as soon as
it is whole; that a stream which says nothing for 25 s has ended; and that the
end always has a reason. Whether to open it again, and when, is the caller's
decision (core/reconnect).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import cast
from urllib.parse import quote

import httpx
import httpx_sse
import trio
from msgspec import Struct

from bridge.core.ids import AttachmentId
from bridge.errors import Refused, Unavailable
from bridge.log import Log
from bridge.upstream import failures
from bridge.upstream.api import BRIDGE, UNAUTHORIZED, Caller
from bridge.upstream.bounded import SILENCE_S, BoundedText
from bridge.upstream.stream_events import (
    LeaseChanged,
    Opened,
    Skipped,
    StreamEvent,
    read_event,
)
from bridge.upstream.transfer import read_capped, with_whole_body

OPEN_DEADLINE_S = 10.0
# What a server may say instead of opening the stream.
REFUSAL_LIMIT_BYTES = 64 * 1024
# A server that makes up event names may not fill the log.
_LOGGED_KINDS = 20


class StreamPlace(Struct, frozen=True):
    """Where a stream starts.

    `cursor` is the watermark; None asks for what this agent was never offered.
    `has_messages` False keeps messages at the server (no room here); heartbeats,
    retractions and receipts still come. `receipts_after` is the last receipt
    number seen.
    """

    attachment_id: AttachmentId
    cursor: int | None = None
    has_messages: bool = True
    receipts_after: int = 0


async def read_stream(
    caller: Caller,
    place: StreamPlace,
    events: trio.MemorySendChannel[StreamEvent],
    log: Log,
) -> None:
    """Follow the stream once; `events` gets Opened first and stays open.

    What cannot be read is a Skipped event, and in the log once for each kind.

    Returns after a LeaseChanged, when the server said that there is no more.
    Raises Unavailable (ended, cut, silent, not there: open it again later),
    Refused (401, 403, 404, 409, 410: not again) or Invalid (nonsense, too big).
    """
    token = await caller.credential.token()
    try:
        await _read_once(caller, place, token, events, log)
    except Refused as error:
        if error.status != UNAUTHORIZED:
            raise
    else:
        return
    renewed = await caller.credential.renewed(token)
    await _read_once(caller, place, renewed, events, log)


async def _read_once(
    caller: Caller,
    place: StreamPlace,
    token: str,
    events: trio.MemorySendChannel[StreamEvent],
    log: Log,
) -> None:
    try:
        async with _opened(caller, place, token) as reply:
            await events.send(Opened(caller.clock.running()))
            await _forward(caller, reply, events, log)
    except httpx.HTTPError as error:
        raise failures.from_exception(error, is_repeatable=True) from error
    except OSError as error:
        raise failures.not_reached(error) from error


@asynccontextmanager
async def _opened(
    caller: Caller, place: StreamPlace, token: str
) -> AsyncIterator[httpx.Response]:
    request = _request(caller, place, token)
    reply = None
    with trio.move_on_after(OPEN_DEADLINE_S):
        reply = await caller.server.streams.send(request, stream=True)
    if reply is None:
        raise failures.lost(True, f"no stream within {OPEN_DEADLINE_S:.0f} s")
    try:
        await _check(caller, reply)
        yield reply
    finally:
        await reply.aclose()


def _request(caller: Caller, place: StreamPlace, token: str) -> httpx.Request:
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "text/event-stream",
        "Cache-Control": "no-store",
    }
    if place.cursor is not None:
        headers["Last-Event-ID"] = str(place.cursor)
    request = caller.server.streams.build_request(
        "GET",
        f"{BRIDGE}/attachments/{quote(place.attachment_id, safe='')}/stream",
        params={
            "messages": "on" if place.has_messages else "off",
            "receipts_after": place.receipts_after,
        },
        headers=headers,
    )
    return with_whole_body(request)


async def _check(caller: Caller, reply: httpx.Response) -> None:
    """Raise unless this is a stream of events in plain UTF-8."""
    if reply.status_code == httpx.codes.NO_CONTENT:
        raise _no_stream("it answered that there is nothing")
    if reply.status_code != httpx.codes.OK:
        content = b""
        with trio.move_on_after(OPEN_DEADLINE_S):
            content = await read_capped(reply, REFUSAL_LIMIT_BYTES)
        raise failures.from_reply(reply, content, caller.clock.wall(), True)
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        raise _no_stream("does this network ask for a login?")
    if reply.headers.get("content-encoding", "identity") != "identity":
        raise failures.nonsense("an encoding that was not asked for")


async def _forward(
    caller: Caller,
    reply: httpx.Response,
    events: trio.MemorySendChannel[StreamEvent],
    log: Log,
) -> None:
    text = BoundedText(reply, silence_s=SILENCE_S)
    source = httpx_sse.EventSource(cast("httpx.Response", text)).aiter_sse()
    logged: set[str] = set()
    try:
        async with aclosing(source):
            async for said in source:
                # After an id, each keep-alive looks like an empty event with it.
                if not said.data:
                    continue
                heard_at = caller.clock.running()
                event = read_event(said.event, said.id, said.data, heard_at)
                if isinstance(event, Skipped):
                    _log_once(log, event, logged)
                await events.send(event)
                if isinstance(event, LeaseChanged):
                    return
    finally:
        await text.stop()
    raise Unavailable(
        "stream_ended",
        "The message server ended the stream.",
        "The stream is opened again.",
    )


def _log_once(log: Log, event: Skipped, logged: set[str]) -> None:
    # The reason may quote the event, so only its kind is logged.
    kind = event.event[:40]
    if kind not in logged and len(logged) < _LOGGED_KINDS:
        logged.add(kind)
        log.warning("stream_event_skipped", kind=kind, sequence=event.sequence)


def _no_stream(why: str) -> Unavailable:
    return Unavailable(
        "no_stream",
        f"The message server's answer is no event stream ({why}).",
        "It is asked again.",
    )
