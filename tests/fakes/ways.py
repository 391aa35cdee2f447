"""A native way that answers as it is told, and keeps what it was handed."""

from __future__ import annotations

import trio

from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached


class ScriptedWay:
    """Each answer is an outcome or a whole Reached; without more it says EMITTED."""

    route = "claude_session"
    address = "claude+session:///home/user/.claude/sessions/1.json"
    budget = Budget("bytes", 96 * 1024)
    limit = 20

    def __init__(self, *answers: OfferOutcome | Reached) -> None:
        self._answers = list(answers)
        self._handed = trio.Condition()
        self.parcels: list[Parcel] = []
        self.is_there = True

    async def is_open(self) -> bool:
        """As `is_there` says."""
        await trio.lowlevel.checkpoint()
        return self.is_there

    async def offer(self, parcel: Parcel) -> Reached:
        """Take the parcel; the next answer."""
        async with self._handed:
            self.parcels.append(parcel)
            self._handed.notify_all()
        answer = self._answers.pop(0) if self._answers else OfferOutcome.EMITTED
        return answer if isinstance(answer, Reached) else Reached(answer)

    async def until(self, count: int) -> None:
        """Return when it was handed this many parcels."""
        async with self._handed:
            while len(self.parcels) < count:
                await self._handed.wait()
