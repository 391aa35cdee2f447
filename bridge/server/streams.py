"""The event stream of one attachment (server-sent events).

    event       id                data
    ----------  ----------------  ---------------------------------------------
    message     mailbox sequence  {"message_id", "sequence": int, "inbox_id",
                                   "conversation_id", "sender",
                                   "sender_provider", "reply_address",
                                   "message": text, "sent_at": RFC 3339}
    alive       none              {"through": int}
    retract     none              {"message_ids": [at most 100], "reason":
                                   "connection_revoked" | "name_unregistered"
                                   | "account_disabled"}
    receipt     none              {"number": int, "message_id",
                                   "delivery": "admitted" | "processed"}
    attachment  none              {"state": "replaced" | "revoked" | "held"
                                   | "unregistered"}; then the body ends

Order at the start: retractions at or below the cursor and receipts, one alive
for the cursor, the messages after it in pages, one alive; then live. An alive
says that the server stands by every message up to `through` that it did not
retract; it follows a look at the database that would have found a retraction.

Owns the streams' life. Promises one stream per attachment (a newer one ends the
older), that nothing is sent to an ended lease after its last event, and that a
client which takes nothing in time is closed: its cursor recovers it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import trio
from msgspec import Struct, structs
from sqlalchemy import update
from starlette.types import Receive, Scope, Send

from bridge.log import Log
from bridge.server.auth import authenticate
from bridge.server.backlog import Frame, Look, Place, look
from bridge.server.faults import named
from bridge.server.leases import CURRENT, LeaseState, any_lease, set_state
from bridge.server.limits import Settings
from bridge.server.mailbox import checked_mailbox_cursor
from bridge.server.presence import Presence
from bridge.server.problems import Problem
from bridge.server.schema import agents
from bridge.server.store import Store, Unit
from bridge.server.wakes import Hub, Subscription

_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
]


class Opening(Struct, frozen=True):
    """What a client asks for; `cursor` None means where its agent got to."""

    attachment_id: str
    cursor: int | None
    receipts_after: int
    has_messages: bool


def encoded(frames: Iterable[Frame]) -> bytes:
    """The frames as they go over the wire."""
    return b"".join(map(_encoded, frames))


def _encoded(frame: Frame) -> bytes:
    number = b"" if frame.id is None else b"id: %d\n" % frame.id
    body = msgspec.json.encode(frame.body)
    return b"%bevent: %b\ndata: %b\n\n" % (number, frame.event.encode(), body)


def alive(through: int) -> Frame:
    """The server's word on everything up to a sequence."""
    return Frame("alive", {"through": through})


class Streams:
    """All streams of one server."""

    def __init__(
        self,
        store: Store,
        hub: Hub,
        presence: Presence,
        settings: Settings,
        log: Log,
    ) -> None:
        self.log = log
        self._store = store
        self._hub = hub
        self._presence = presence
        self._settings = settings
        self._is_stopping = False

    async def open(self, token: str, opening: Opening) -> EventStream:
        """Admit one stream; the answer is an ASGI response.

        Raises Problem: 401, 403, 404, 422 `wrong_cursor`, 503
        `too_many_streams` or `stopping`.
        """
        self._require_room(opening.attachment_id)
        place = await self._store.write(lambda unit: _admit(unit, token, opening))
        return EventStream(self, place)

    def stop(self) -> None:
        """End every stream after what it is sending now."""
        self._is_stopping = True
        self._hub.notify_all()

    def _require_room(self, attachment_id: str) -> None:
        is_full = self._presence.count() >= self._settings.streams
        if self._is_stopping:
            raise Problem(503, "stopping", "The server is stopping.", retry_after_s=1.0)
        if is_full and not self._presence.is_connected(attachment_id):
            raise Problem(
                503,
                "too_many_streams",
                f"This server carries {self._settings.streams} streams at most.",
                "Run the server alone, with a higher limit, for a larger group.",
                retry_after_s=30.0,
            )

    async def follow(self, place: Place, stream: EventStream, send: Send) -> None:
        """Tell the stream all there is, then what comes, until it is over."""
        older = self._presence.arrive(place.attachment_id, stream)
        if isinstance(older, EventStream):
            older.scope.cancel()
        try:
            with self._hub.subscribe(place.agent_id) as woken:
                await self._tell(place, woken, send)
        finally:
            await self._leave(place, stream)

    async def _tell(self, place: Place, woken: Subscription, send: Send) -> None:
        ready = structs.replace(place, has_messages=False)
        found = await self._catch_up(ready, send)
        if found.is_over:
            return
        await _write(send, encoded([alive(place.cursor)]))
        place = structs.replace(found.place, has_messages=place.has_messages)
        beat_at = trio.current_time()
        while not self._is_stopping:
            found = await self._catch_up(place, send)
            if found.is_over:
                return
            place = found.place
            if trio.current_time() >= beat_at:
                await _write(send, encoded([alive(place.cursor)]))
                beat_at = trio.current_time() + self._settings.heartbeat_s
            with trio.move_on_at(beat_at):
                await woken.wait()

    async def _catch_up(self, place: Place, send: Send) -> Look:
        """Send all there is now, page by page; returns the last look."""
        while True:
            here = place
            found = await self._store.read(lambda unit: look(unit, here))  # noqa: B023
            if found.frames:
                await _write(send, encoded(found.frames))
            if found.is_over or not found.has_more:
                return found
            place = found.place

    async def _leave(self, place: Place, stream: EventStream) -> None:
        was_last = self._presence.leave(place.attachment_id, stream)
        # At a stop, one statement closes them all.
        if not was_last or self._is_stopping:
            return
        with trio.CancelScope(shield=True):
            await self._store.write(lambda unit: _mark_closed(unit, place))


class EventStream:
    """The ASGI response of one stream. `scope` ends it from outside."""

    def __init__(self, streams: Streams, place: Place) -> None:
        self._streams = streams
        self._place = place
        self.scope = trio.CancelScope()

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send the head, follow until over or until the client is gone."""
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        try:
            with self.scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch, receive)
                    await self._streams.follow(self._place, self, send)
                    nursery.cancel_scope.cancel()
        except Exception as error:
            self._streams.log.error("stream_failed", error=named(error))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.scope.cancel()


async def _write(send: Send, chunk: bytes) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": True})


def _admit(unit: Unit, token: str, opening: Opening) -> Place:
    """Check the caller, mark the lease attached, and find where to start."""
    caller = authenticate(unit, token)
    agent = any_lease(unit, caller, opening.attachment_id)
    if agent.lease_state in CURRENT:
        set_state(unit, opening.attachment_id, LeaseState.ATTACHED)
        unit.run(
            update(agents)
            .where(agents.c.id == agent.id)
            .values(stream_open=True, seen_at=unit.now)
        )
    cursor = agent.offered_through if opening.cursor is None else opening.cursor
    return Place(
        attachment_id=opening.attachment_id,
        agent_id=agent.id,
        connection_id=caller.connection_id,
        cursor=checked_mailbox_cursor(cursor),
        receipt=opening.receipts_after,
        has_messages=opening.has_messages,
    )


def _mark_closed(unit: Unit, place: Place) -> None:
    unit.run(
        update(agents)
        .where(
            agents.c.id == place.agent_id,
            agents.c.attachment_id == place.attachment_id,
        )
        .values(stream_open=False, seen_at=unit.now)
    )


def mark_all_closed(unit: Unit) -> None:
    """At the start of a server no stream is open, whatever the last one noted."""
    unit.run(
        update(agents)
        .where(agents.c.stream_open.is_(True))
        .values(stream_open=False, seen_at=unit.now)
    )
