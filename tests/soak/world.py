"""The processes of a soak: bridge, server, scripts, the person, hostile clients.

Owns their start and their violent ends. Promises that each is ended by its own
pid, that a bridge or server which ends without being told to is noted and started
again, and that every kill is noted with its time before it is made.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from msgspec import Struct

from bridge.clock import SystemClock
from tests.journeys.rig.computer import ROOT, Computer, computer_in
from tests.journeys.rig.puppets import Denied, Puppet, puppet
from tests.journeys.rig.running import Running, running
from tests.soak.cutting import Cutter
from tests.soak.evidence import refused_of
from tests.soak.facts import Kill, Outgoing

HERE = Path(__file__).resolve().parent
ACKS = ("processed", "both", "admitted", "none")
_TRIES_FOR_S = 90.0
_AGAIN_S = 0.2
# It may or may not have happened, or is about to: asking again is safe.
_MAY_PASS = ("bridge_silent", "detaching")


class Actor(Struct):
    """One name, and the process that has it now."""

    name: str
    process: Puppet
    acks: str
    is_over: bool = False


class World:
    """See the module; made by `open_world`."""

    def __init__(
        self, folder: Path, seed: str, computer: Computer, things: AsyncExitStack
    ) -> None:
        self.computer = computer
        self.seed = seed
        self.actors: dict[str, Actor] = {}
        self.kills: list[Kill] = []
        self.accidents: list[str] = []
        self.dropped: set[str] = set()
        self.forgotten: list[Outgoing] = []
        self.unlisted: dict[str, float] = {}
        self.unregistered: dict[str, float] = {}
        self.detached: set[str] = set()
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.told = folder / "world.jsonl"
        self.denied = ""  # the last no that the person was given
        self.cutter = Cutter(folder / "line.sock", computer.server_socket)
        self.bridge: Running | None = None
        self.server: Running | None = None
        self.clock = SystemClock()
        self._things = things
        self._starts = 0
        # One thing at a time is done to each of the two.
        self._turns = {"bridge": trio.Lock(), "server": trio.Lock()}

    # ---- bridge and server -------------------------------------------------------

    async def start_server(self) -> None:
        """The server alone, as a person starts it."""
        socket = str(self.computer.server_socket)
        words = ["-m", "bridge", "server", "run", "--socket", socket]
        self.server = await self._start(words, "server")

    async def start_bridge(self) -> None:
        """The bridge; it reaches the server over the line that can be cut."""
        address = f"unix://{self.computer.server_socket.with_name('line.sock')}"
        words = ["-m", "bridge", "--server", address, "bridge", "run"]
        self.bridge = await self._start(words, "bridge")

    async def until_up(self) -> None:
        """Wait until both answer for the first time."""
        assert self.server is not None
        await self.server.until(self.computer.paths.parent_token.exists, "a login")
        await self.start_bridge()
        assert self.bridge is not None
        await self.bridge.until(self.computer.answers, "an answer to hello")

    async def kill(self, which: str, pause_s: float) -> None:
        """kill -9, and a start after a pause."""
        async with self._turns[which]:
            self.kills.append(Kill(self.clock.running(), which))
            self.tell("kill", which=which)
            await self.running(which).kill()
            await trio.sleep(pause_s)
            await self._start_again(which)

    async def freeze(self, which: str, seconds: float) -> None:
        """SIGSTOP for so long."""
        async with self._turns[which]:
            victim = self.running(which)
            os.kill(victim.pid, signal.SIGSTOP)
            try:
                await trio.sleep(seconds)
            finally:
                if victim.ended is None:
                    os.kill(victim.pid, signal.SIGCONT)

    async def mend(self) -> None:
        """Whatever ended by itself is an accident, and is started again."""
        for which, turn in self._turns.items():
            async with turn:
                ended = self.running(which).ended
                if ended is not None:
                    self.accidents.append(f"the {which} ended by itself with {ended}")
                    await self._start_again(which)

    async def stop(self) -> None:
        """Both end in order, as a person ends them."""
        for which in ("bridge", "server"):
            code = await self.running(which).stop()
            if code != 0:
                self.accidents.append(f"the {which} was stopped and ended with {code}")

    def running(self, which: str) -> Running:
        """The process of this name."""
        found = self.bridge if which == "bridge" else self.server
        assert found is not None
        return found

    async def _start_again(self, which: str) -> None:
        await (self.start_bridge() if which == "bridge" else self.start_server())

    async def _start(self, words: list[str], name: str) -> Running:
        self._starts += 1
        record = self.computer.records / f"{self._starts:03d}-{name}.log"
        started = running(words, self.computer.environment, record)
        return await self._things.enter_async_context(started)

    def tell(self, what: str, **said: object) -> None:
        """A line for whoever looks into a run that failed."""
        line = {"at": self.clock.running(), "what": what, **said}
        with self.told.open("a") as file:
            file.write(json.dumps(line) + "\n")

    # ---- people ---------------------------------------------------------------------

    async def person(self, verb: str, **said: Any) -> Any:
        """A call of the person, again while it may pass; None where it was refused."""
        with trio.move_on_after(_TRIES_FOR_S):
            while True:
                try:
                    return await self.computer.person(verb, **said)
                except Denied as denied:
                    if denied.exit != os.EX_TEMPFAIL and denied.code not in _MAY_PASS:
                        self.denied = f"{verb}: {denied}"
                        return None
                await trio.sleep(_AGAIN_S)
        self.accidents.append(f"the person was refused {verb} for {_TRIES_FOR_S:g} s")
        return None

    async def new_actor(self, name: str, acks: str) -> Actor:
        """A fresh script under this name, which lives from now on."""
        process = await self._things.enter_async_context(
            puppet(self.computer.environment, HERE / "worker.py")
        )
        actor = Actor(name, process, acks)
        if await self.attach(actor):
            self.actors[name] = actor
        return actor

    async def attach(self, actor: Actor) -> bool:
        """The person attaches it."""
        done = await self.person(
            "attach", name=actor.name, provider="script", native_pid=actor.process.pid
        )
        self.detached.discard(actor.name)
        return done is not None

    async def begin(self, actor: Actor, pace_s: float) -> None:
        """Let it live."""
        await actor.process.do(
            "begin",
            state=str(self.computer.state),
            notes=str(self.notes / f"{actor.name}.jsonl"),
            name=actor.name,
            seed=self.seed,
            peers=self.peers_of(actor.name),
            acks=actor.acks,
            pace_s=pace_s,
        )

    async def detach(self, actor: Actor) -> None:
        """The person detaches it; what was never sent is listed."""
        self.detached.add(actor.name)
        self.forgotten += refused_of(self.computer.paths.journal, actor.name)
        done = await self.person("detach", name=actor.name)
        if done is None:  # done before, by a call whose answer was lost
            self.unlisted[actor.name] = self.clock.running()
        else:
            self.dropped |= set(done["queued"])
        self.tell("detached", agent=actor.name, done=done)

    async def unregister(self, actor: Actor) -> None:
        """The name goes for good, and with it what it sent and nobody has taken."""
        self.tell("unregister", agent=actor.name)
        actor.is_over = True
        self.unregistered[actor.name] = float("inf")
        await self.person("messages_unregister", agent=actor.name)
        self.unregistered[actor.name] = self.clock.running()
        await actor.process.do("phase", name="rest", peers=[])

    async def phase(self, name: str) -> None:
        """All scripts work, settle or rest."""
        for actor in self.living():
            peers = self.peers_of(actor.name)
            await actor.process.do("phase", name=name, peers=peers)

    def living(self) -> list[Actor]:
        """Those whose name and process are there."""
        return [each for each in self.actors.values() if not each.is_over]

    def peers_of(self, name: str) -> list[str]:
        """Whom it may write to."""
        return [each.name for each in self.living() if each.name != name]


@asynccontextmanager
async def open_world(folder: Path, ask: Path, seed: str) -> AsyncIterator[World]:
    """Server, bridge and the line between them, up; all is ended at the end."""
    async with (
        computer_in(folder, ask) as computer,
        AsyncExitStack() as things,
        trio.open_nursery() as nursery,
    ):
        computer.environment["PYTHONPATH"] = str(ROOT)
        computer.install()
        computer.paths.prepare()
        world = World(folder, seed, computer, things)
        await nursery.start(world.cutter.serve)
        await world.start_server()
        await world.until_up()
        yield world
        nursery.cancel_scope.cancel()
