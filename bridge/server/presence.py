"""Which attachments have a stream now, and which are live.

Owns what only this process can know: open streams, and when each attachment was
last seen, on the clock that runs during suspend. Promises that a server restart
takes nobody's name away: an attachment not seen yet counts from the start.
Written in the event loop, read in worker threads: single dict operations.
"""

from __future__ import annotations

from bridge.clock import Clock


class Presence:
    """`grace_s`: how long a lease without a stream stays live."""

    def __init__(self, clock: Clock, grace_s: float) -> None:
        self._clock = clock
        self._grace_s = grace_s
        self._started = clock.running()
        self._open: dict[str, object] = {}
        self._seen: dict[str, float] = {}

    def arrive(self, attachment_id: str, stream: object) -> object | None:
        """A stream opened; returns the older one of this attachment, if any."""
        older = self._open.get(attachment_id)
        self._open[attachment_id] = stream
        self.see(attachment_id)
        return older

    def leave(self, attachment_id: str, stream: object) -> bool:
        """A stream ended; True when no newer one has taken its place."""
        if self._open.get(attachment_id) is not stream:
            return False
        del self._open[attachment_id]
        self.see(attachment_id)
        return True

    def see(self, attachment_id: str) -> None:
        """It showed a sign of life now."""
        self._seen[attachment_id] = self._clock.running()

    def forget(self, attachment_id: str) -> None:
        """Its lease is over."""
        self._seen.pop(attachment_id, None)

    def is_connected(self, attachment_id: str | None) -> bool:
        """True while a stream of it is open."""
        return attachment_id in self._open

    def is_live(self, attachment_id: str) -> bool:
        """True while connected, and for the grace after it was last seen."""
        if attachment_id in self._open:
            return True
        seen = self._seen.get(attachment_id, self._started)
        return self._clock.running() - seen < self._grace_s

    def count(self) -> int:
        """How many streams are open."""
        return len(self._open)
