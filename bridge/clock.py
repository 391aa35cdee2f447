"""The only place that reads time and randomness.

Owns the wall clock (display and the 7-day and 24-hour rules), the clock that
keeps running during suspend (every validity and deadline that leaves a task),
and the source of random bytes. Deadlines inside a task are trio's own.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the rooms ask for; tests pass a clock of their own."""

    def wall(self) -> float:
        """Seconds since 1970 UTC; may jump, never used for order."""
        ...

    def running(self) -> float:
        """Seconds on a clock that never goes back and runs during suspend."""
        ...

    def random_bytes(self, count: int) -> bytes:
        """Unpredictable bytes."""
        ...

    def random_fraction(self) -> float:
        """A number from 0 up to but not including 1."""
        ...


_RUNNING_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The computer's clocks. macOS' monotonic clock stands still in suspend."""

    def wall(self) -> float:
        """See Clock."""
        return time.time()  # noqa: TID251 - the one place

    def running(self) -> float:
        """See Clock."""
        return time.clock_gettime(_RUNNING_CLOCK)

    def random_bytes(self, count: int) -> bytes:
        """See Clock."""
        return os.urandom(count)

    def random_fraction(self) -> float:
        """See Clock."""
        return int.from_bytes(os.urandom(7)) / 2**56


def rfc3339(wall_s: float) -> str:
    """A wall time as `2026-11-29T16:05:29Z`, whole seconds, UTC."""
    moment = datetime.fromtimestamp(int(wall_s), UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
