"""A native way of a machine: it holds what it was handed until a script says on.

Owns what happens on it. The chat's agent may have been handed the text from the
moment the way was; only `unprinted` says for certain that it was not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached
from bridge.driver import natives
from bridge.driver.bridge import Bridge
from tests.faults.whole import host
from tests.faults.whole.life import Life

if TYPE_CHECKING:
    from tests.faults.whole.story import Story

_OUTCOMES = {
    "printed": OfferOutcome.EMITTED,
    "unprinted": OfferOutcome.NOT_EMITTED,
    "": OfferOutcome.UNKNOWN,
}


class HeldWay:
    """See the module; one life's way to one session."""

    route = "codex_app_server"
    address = "unix:///home/user/.codex/app-server.sock"
    budget = Budget("bytes", 96 * 1024)
    limit = 20

    def __init__(self, story: Story, life: Life) -> None:
        self._story = story
        self._life = life
        self._word = trio.Event()
        self._outcome = OfferOutcome.UNKNOWN
        self.refused: set[str] = set()
        self.is_there = True
        self.text = ""

    @property
    def holds_offer(self) -> bool:
        """It was handed something, and nobody has said what came of it."""
        return bool(self.text) and not self._life.is_dead

    async def is_open(self) -> bool:
        """See bridge/routes/way.py."""
        await trio.lowlevel.checkpoint()
        return self.is_there

    async def offer(self, parcel: Parcel) -> Reached:
        """Hold it until `say`, or until the driver's patience ends."""
        if self._life.is_dead:
            await trio.sleep_forever()
        self.text, self._word = parcel.text, trio.Event()
        self._story.note_parcel(self.text)
        again = self.refused & set(host.shown_in(parcel.text))
        self._story.witness(not again, f"{again} went the native way again")
        try:
            await self._word.wait()
        finally:
            self.text = ""
        return Reached(self._outcome)

    def say(self, word: str) -> None:
        """What came of it: printed, unprinted or nothing known."""
        self._outcome = _OUTCOMES[word]
        if word == "unprinted":
            self.refused.update(host.shown_in(self.text))
        self._word.set()


class Ways:
    """The ways of one story; at most one is in use."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._way: HeldWay | None = None

    @property
    def were_there(self) -> bool:
        """Something may have been lost on one."""
        return self._way is not None

    def found(self) -> None:
        """The attached chat has one from now on."""
        queue = self._story.life.present()
        if queue is None:
            return
        way = self._way = HeldWay(self._story, self._story.life)

        async def use(bridge: Bridge) -> None:
            await natives.use(bridge, queue, way)

        self._story.call(use)

    def gone(self) -> None:
        """It leads nowhere any more; of what it holds nothing is known."""
        if self._way is not None:
            self._way.is_there = False
            self._way.say("")

    def say(self, word: str, *, is_seen: bool) -> None:
        """What came of the offer that it holds."""
        if self._way is None or not self._way.holds_offer:
            return
        text, is_seen = self._way.text, is_seen and word != "unprinted"
        shown, named = host.shown_in(text), host.named_in(text)
        self._story.oracle.word(shown, named, word, is_seen=is_seen)
        self._way.say(word)
