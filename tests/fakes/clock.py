"""A clock that a test moves by hand; its randomness is the same every time."""

from __future__ import annotations

import hashlib


class FakeClock:
    """See bridge.clock.Clock. Starts on an ordinary day, and stands still."""

    def __init__(self, wall_s: float = 1_790_000_000.0) -> None:
        self.wall_s = wall_s
        self.running_s = 1000.0
        self._drawn = 0

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.wall_s += seconds
        self.running_s += seconds

    def wall(self) -> float:
        return self.wall_s

    def running(self) -> float:
        return self.running_s

    def random_bytes(self, count: int) -> bytes:
        drawn = b""
        while len(drawn) < count:
            drawn += hashlib.sha256(f"{self._drawn}".encode()).digest()
            self._drawn += 1
        return drawn[:count]

    def random_fraction(self) -> float:
        return int.from_bytes(self.random_bytes(7)) / 2**56
