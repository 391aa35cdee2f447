"""The computer slept: what was heard before is old, and streams are opened anew.

Owns how a sleep is noticed: the clock that runs during it got ahead of the one
that does not. Promises that nothing which was sent before a sleep counts as fresh
after it, that every stream is opened again within seconds of waking, and that a
thousand of them do not all do it in one moment.
"""

from __future__ import annotations

import trio

from bridge.clock import Clock
from bridge.core import release
from bridge.driver.bridge import Bridge

CHECK_EVERY_S = 5.0
# Less than this is a busy computer, not a sleeping one.
SLEPT_S = 2.0


class Wakefulness:
    """Whether the computer slept since this was made, or last asked `was_lost`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s = self._ahead()

    def was_lost(self) -> bool:
        """True when it slept meanwhile; asked again, only what came after counts."""
        before, self._ahead_s = self._ahead_s, self._ahead()
        return self._ahead_s - before > SLEPT_S

    def _ahead(self) -> float:
        return self._clock.running() - trio.current_time()


async def watch_sleep(bridge: Bridge) -> None:
    """Until cancelled: drop every word and open every stream again after a sleep."""
    wakefulness = Wakefulness(bridge.clock)
    while True:
        await trio.sleep(CHECK_EVERY_S)
        if wakefulness.was_lost():
            bridge.log.info("computer_slept")
            for queue in bridge.roster:
                queue.releases = release.resumed(queue.releases)
                queue.computer_woke()
