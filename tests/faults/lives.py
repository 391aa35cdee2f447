"""The lives of one daemon: each forked, run, and ended or killed at a write.

Owns the sweep's long-lived processes (the message server, the person, two
scripts, the zygote) and the fresh state folder of each point.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import trio
from msgspec import Struct

from tests.faults import zygote
from tests.journeys.rig.computer import Agent, Computer
from tests.journeys.rig.puppets import Puppet, puppet
from tests.journeys.rig.waiting import until_some

ZYGOTE = Path(zygote.__file__)
# One server hears from every point; its usual limits are for one person's chats.
LIMITS = {"names": 100_000, "names_per_account": 100_000, "heartbeat_s": 1}


class Point(Struct, frozen=True):
    """The `number`-th time the writer thread makes this call it is killed."""

    call: str
    number: int

    def strace(self, writer: int, journal: Path) -> Sequence[str]:
        """The command that sees to it."""
        births = [f"{journal}.new{end}" for end in ("", "-journal", "-wal", "-shm")]
        files = [f"{journal}", f"{journal}-wal", f"{journal}-shm", *births]
        limits = [word for file in files for word in ("-P", file)]
        if self.call == "sendto":
            limits = []  # how the writer tells the daemon that a commit is done
        inject = f"inject={self.call}:signal=SIGKILL:when={self.number}"
        trace = f"trace={self.call}"
        ends = ["-o", os.devnull, "-p", str(writer)]
        return ["strace", "-e", trace, *limits, "-e", inject, *ends]


class Crew:
    """What stays alive from point to point."""

    def __init__(
        self, main: Computer, person: Puppet, scripts: list[Puppet], mother: Puppet
    ) -> None:
        self.main = main
        self.person = person
        self.scripts = scripts
        self.mother = mother


class Lives:
    """One state folder, from its first daemon to its last."""

    def __init__(self, crew: Crew, folder: Path, ask: Path) -> None:
        self._mother = crew.mother
        self._server = f"unix://{crew.main.server_socket}"
        self.computer = Computer(folder, ask, AsyncExitStack(), crew.person)
        self.computer.install()
        self.computer.paths.server.mkdir(mode=0o700)
        shutil.copy(crew.main.paths.parent_token, self.computer.paths.parent_token)
        self.alice, self.bob = (Agent(self.computer, each) for each in crew.scripts)
        self._record = self.computer.records / "daemon"
        self._pid = 0

    async def begin(self) -> None:
        """A daemon that lives until it is told otherwise."""
        self._pid = await self._mother.do("start", **self._words())

    async def begin_doomed(self, point: Point) -> trio.Process:
        """A daemon that is killed at this point; its tracer."""
        self._pid, writer = await self._mother.do("start_paused", **self._words())
        command = point.strace(writer, self.computer.paths.journal)
        tracer = await trio.lowlevel.open_process(command, stderr=subprocess.PIPE)
        assert tracer.stderr is not None
        said = b""
        while b"attached" not in said:
            chunk = await tracer.stderr.receive_some()
            assert chunk, f"strace: {said.decode()}"
            said += chunk
        await self._mother.do("go")
        return tracer

    async def until_serving(self) -> None:
        """Wait until it answers."""

        async def ask() -> bool:
            return self.computer.answers()

        await until_some(ask, "an answer to hello")

    async def end(self) -> int:
        """Its exit code, once it has ended."""
        code: int = await self._mother.do("end")
        self._pid = 0
        return code

    async def kill(self) -> None:
        """End it as a crash does."""
        self.strike()
        await self.end()

    def strike(self) -> None:
        """End what still runs of it, without waiting for its end."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    @property
    def said(self) -> str:
        """What its daemons wrote."""
        return self._record.read_text() if self._record.exists() else ""

    def _words(self) -> dict[str, str]:
        return {
            "state": str(self.computer.state),
            "server": self._server,
            "record": str(self._record),
        }


@asynccontextmanager
async def crew_in(main: Computer) -> AsyncIterator[Crew]:
    """People, scripts and a zygote for one sweep at a time."""
    async with AsyncExitStack() as things:
        started = [
            await things.enter_async_context(puppet(main.environment)) for _ in range(3)
        ]
        mother = await things.enter_async_context(puppet(main.environment, ZYGOTE))
        yield Crew(main, started[0], started[1:], mother)
