"""What every call of one running server shares, and the one way of waiting.

Owns the wiring of store, hub, presence and streams. Promises that a read which
waits checks its caller's access again before it shows anything.
"""

from __future__ import annotations

from collections.abc import Callable

import trio
from msgspec import Struct

from bridge.clock import Clock
from bridge.log import Log
from bridge.server.database import Database
from bridge.server.limits import Settings
from bridge.server.mailbox import Page, Reading, read, wake_key
from bridge.server.presence import Presence
from bridge.server.store import Store, Unit
from bridge.server.streams import Streams
from bridge.server.wakes import Hub


class Rooms(Struct, frozen=True):
    """One running server."""

    settings: Settings
    store: Store
    hub: Hub
    streams: Streams
    log: Log


def furnish(database: Database, settings: Settings, clock: Clock, log: Log) -> Rooms:
    """Build a server around an open database."""
    hub = Hub(settings.wake_slice)
    presence = Presence(clock, settings.live_without_stream_s)
    store = Store(database, settings, clock, presence, hub)
    streams = Streams(store, hub, presence, settings, log)
    return Rooms(settings, store, hub, streams, log)


async def waited_page(
    rooms: Rooms, reading: Callable[[Unit], Reading], wait_s: float
) -> Page:
    """The page, waiting up to `wait_s` seconds (at most 25) for its first message.

    `reading` authenticates and says what to read, in the same transaction.
    """

    def attempt(unit: Unit) -> tuple[str, Page]:
        asked = reading(unit)
        return wake_key(asked), read(unit, asked)

    key, page = await rooms.store.read(attempt)
    if page.messages or wait_s <= 0:
        return page
    with trio.move_on_after(min(wait_s, rooms.settings.read_wait_s)):
        with rooms.hub.subscribe(key) as woken:
            while True:
                # Race: look after subscribing, or a message stored in between
                # is not seen (test_a_message_between_look_and_wait_is_seen).
                _, page = await rooms.store.read(attempt)
                if page.messages:
                    return page
                await woken.wait()
    return page
