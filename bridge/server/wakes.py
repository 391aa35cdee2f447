"""Who is waiting, and who is woken, in slices.

Owns the subscriptions of streams and waiting reads, by key (an agent id or a
conversation id). A wake carries nothing and says "look again": duplicates
collapse, and a look finds all there is. Promises that at most one slice of
subscribers becomes runnable in one turn of the loop, so that a fan-out never
holds up anything else in the process.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Self

import trio


class Subscription:
    """One waiter. Use: `with hub.subscribe(key) as woken: … await woken.wait()`."""

    def __init__(self, hub: Hub, key: str) -> None:
        self._hub = hub
        self.key = key
        self._event = trio.Event()

    def __enter__(self) -> Self:
        self._hub.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._hub.discard(self)

    def set(self) -> None:
        """Make the waiter look again."""
        self._event.set()

    async def wait(self) -> None:
        """Until somebody says "look again" after the last call returned."""
        await self._event.wait()
        # Race: renewed before the caller looks, so a wake during its look is
        # kept (test_a_wake_during_a_look_is_not_lost).
        self._event = trio.Event()


class Hub:
    """All subscriptions of one server; `run` wakes them."""

    def __init__(self, slice_size: int) -> None:
        self._slice_size = slice_size
        self._by_key: dict[str, set[Subscription]] = defaultdict(set)
        self._due: dict[Subscription, None] = {}
        self._work = trio.Event()

    def subscribe(self, key: str) -> Subscription:
        """A waiter for this key, counted from entering its `with` block."""
        return Subscription(self, key)

    def add(self, subscription: Subscription) -> None:
        """Called by the subscription."""
        self._by_key[subscription.key].add(subscription)

    def discard(self, subscription: Subscription) -> None:
        """Called by the subscription; no trace of it stays."""
        self._due.pop(subscription, None)
        waiters = self._by_key[subscription.key]
        waiters.discard(subscription)
        if not waiters:
            del self._by_key[subscription.key]

    def notify(self, keys: Iterable[str]) -> None:
        """Everyone waiting for one of these keys is due; returns at once."""
        for key in keys:
            self._due.update(dict.fromkeys(self._by_key.get(key, ())))
        if self._due:
            self._work.set()

    def notify_all(self) -> None:
        """Everyone is due (the server stops)."""
        self.notify(list(self._by_key))

    async def run(self) -> None:
        """Wake who is due, a slice a turn, until cancelled."""
        while True:
            await self._work.wait()
            self._work = trio.Event()
            while self._due:
                for subscription in list(self._due)[: self._slice_size]:
                    del self._due[subscription]
                    subscription.set()
                await trio.lowlevel.checkpoint()

    def statistics(self) -> dict[str, int]:
        """How many wait, and how many of them are due."""
        waiting = sum(len(waiters) for waiters in self._by_key.values())
        return {"waiting": waiting, "due": len(self._due)}
