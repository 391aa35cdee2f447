"""What is done to the world, and when.

Owns the plan, which follows from the seed alone, and the strikes. Promises that
kills of bridge and server are over after some time, so that what is left of both
lives long enough to be watched, and that nobody is left frozen or cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
from msgspec import Struct

from tests.journeys.rig.puppets import Puppet
from tests.soak.cutting import Wire
from tests.soak.dice import Dice
from tests.soak.hostile import ATTACKS
from tests.soak.world import ACKS, Actor, World

KILLS_UNTIL = 0.6  # of the time
QUIET_S = 2.0
_AT_BOTH_DOORS = ("silent", "garbage", "giant", "half", "flood")
_MEND_EVERY_S = 0.5
FEWEST = 40
_KILLS = {"kill_bridge": 11.0, "kill_server": 14.0}
# Seconds between two of a kind, on average.
_EVERY_S = {
    "freeze_bridge": 13.0,
    "freeze_server": 13.0,
    "cut": 3.0,
    "tear": 4.0,
    "cut_all": 30.0,
    "delay": 12.0,
    "silence": 20.0,
    "refuse": 20.0,
    "attack": 2.5,
    "move": 7.0,
    "die": 17.0,
    "unregister": 35.0,
}


class Strike(Struct, frozen=True, order=True):
    """One deed, so many seconds after the start; `size` is from 0 to 1."""

    at: float
    kind: str
    size: float


def plan(dice: Dice, seconds: float) -> list[Strike]:
    """All strikes of a soak that works for so long."""
    strikes: list[Strike] = []
    for kinds, until in ((_KILLS, seconds * KILLS_UNTIL), (_EVERY_S, seconds)):
        for kind, every_s in kinds.items():
            at = QUIET_S + dice.between(0, every_s)
            while at < until - QUIET_S:
                strikes.append(Strike(at, kind, dice.fraction()))
                at += every_s * dice.between(0.3, 1.7)
    return sorted(strikes)


class Chaos:
    """Carries out a plan. `told` collects what hostile clients were told."""

    def __init__(
        self, world: World, dice: Dice, hostile: Puppet, pace_s: float
    ) -> None:
        self._world = world
        self._dice = dice
        self._hostile = hostile
        self._pace_s = pace_s
        self._names = len(world.actors)
        self._busy: set[str] = set()
        self.told: list[str] = []
        self.done: dict[str, int] = {}

    async def rage(self, strikes: Sequence[Strike]) -> None:
        """All of them, each in its time and beside the others."""
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._mend_until, began + strikes[-1].at)
            for strike in strikes:
                await trio.sleep_until(began + strike.at)
                self.done[strike.kind] = self.done.get(strike.kind, 0) + 1
                nursery.start_soon(self._strike, strike)
        self._world.cutter.delay_s = 0.0
        self._world.cutter.refuses = False

    async def _mend_until(self, end: float) -> None:
        while trio.current_time() < end:
            await self._world.mend()
            await trio.sleep(_MEND_EVERY_S)

    async def _strike(self, strike: Strike) -> None:
        self._world.tell("strike", kind=strike.kind, size=strike.size)
        deed, _, which = strike.kind.partition("_")
        if which in ("bridge", "server"):
            await self._hit(deed, which, strike.size)
        elif deed in ("cut", "tear"):
            self._sever(deed, 1.0 if which else strike.size * 0.15)
        elif deed in ("delay", "silence", "refuse"):
            await self._trouble(deed, strike.size)
        elif deed == "attack":
            await self.attack(self._dice.one_of(sorted(ATTACKS)))
        else:
            await self._upset(deed, strike.size)

    async def _hit(self, deed: str, which: str, size: float) -> None:
        if deed == "kill":
            await self._world.kill(which, size)
        else:
            await self._world.freeze(which, 0.05 + 3 * size * size)

    # ---- the line ------------------------------------------------------------------

    def _sever(self, deed: str, share: float) -> None:
        wires = self._world.cutter.wires
        chosen: list[Wire] = [each for each in wires if self._dice.happens(share)]
        if deed == "cut":
            self._world.cutter.cut(chosen)
        else:
            self._world.cutter.tear(chosen)

    async def _trouble(self, deed: str, size: float) -> None:
        cutter = self._world.cutter
        if deed == "silence":
            await cutter.silence(3 * size)
        elif deed == "delay":
            cutter.delay_s = 0.2 * size
            await trio.sleep(3.0)
            cutter.delay_s = 0.0
        else:
            cutter.refuses = True
            await trio.sleep(2 * size)
            cutter.refuses = False

    # ---- people and strangers ------------------------------------------------------

    async def attack(self, kind: str) -> None:
        """Let the hostile client do this, at one of the two doors."""
        computer = self._world.computer
        folder, socket = computer.state / "run", "bridge.sock"
        if kind in _AT_BOTH_DOORS and self._dice.happens(0.4):
            folder, socket = computer.server_socket.parent, computer.server_socket.name
        said: dict[str, Any] = {"folder": str(folder), "socket": socket}
        said["count"] = 6 + self._dice.below(24)
        if kind == "forged":
            said["victims"] = sorted(self._world.actors)
        self.told.append(await self._hostile.do(kind, **said))

    async def _upset(self, deed: str, size: float) -> None:
        """Somebody moves out and in, dies and comes back, or goes for good."""
        actor = self._free_actor()
        if actor is None:
            return
        self._busy.add(actor.name)
        try:
            await self._upset_one(deed, actor, size)
        finally:
            self._busy.discard(actor.name)

    async def _upset_one(self, deed: str, actor: Actor, size: float) -> None:
        world = self._world
        if deed == "move":
            await world.detach(actor)
            await trio.sleep(4 * size)
            if not await world.attach(actor):
                self._note_not_attached(actor.name)
        elif deed == "die":
            actor.is_over = True
            world.tell("die", agent=actor.name)
            await actor.process.kill()
            await trio.sleep(3 * size)
            await self._arrive(actor.name, actor.acks)
        else:
            await world.unregister(actor)
            self._names += 1
            name = f"agent-{self._names:02d}"
            await self._arrive(name, ACKS[self._names % len(ACKS)])

    async def _arrive(self, name: str, acks: str) -> None:
        actor = await self._world.new_actor(name, acks)
        if self._world.actors.get(name) is actor:
            await self._world.begin(actor, self._pace_s)
        else:
            self._note_not_attached(name)

    def _note_not_attached(self, name: str) -> None:
        why = self._world.denied
        self._world.accidents.append(f"{name} could not be attached ({why})")

    def _free_actor(self) -> Actor | None:
        free = [each for each in self._world.living() if each.name not in self._busy]
        return self._dice.one_of(free) if len(free) > FEWEST else None
