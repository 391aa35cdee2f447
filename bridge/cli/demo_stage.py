"""The demo's processes: a message server, a bridge, scripts, and the person.

Owns a scratch state folder with a home of its own and every process in it.
Promises that each is started with a chosen environment, is known by its exact
pid, and is ended by that pid, whatever else happened.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import trio
from msgspec import Struct

from bridge.cli import demo_script
from bridge.clock import Clock
from bridge.errors import BridgeError
from bridge.local.client import call
from bridge.local.replies import AgentRow, AgentsReply, HelloReply, decode_answer
from bridge.local.requests import Agents, Hello
from bridge.paths import Paths
from bridge.providers.process import facts_of, marks_of, pids_of_user
from bridge.service.background import clean_environment

# Generous: a computer with a lot else to do is no failure of ours.
COMMAND_S = 20.0
READY_S = 20.0
END_S = 5.0
PAUSE_S = 0.02
_ANSWER_S = 2.0
_LAST_WORDS = 300  # characters of what a failed command said

Found = TypeVar("Found")


class NotSo(Exception):
    """What the demo was to show is not so; the text says what it saw."""


class CommandFailed(NotSo):
    """A command ended in an error, which may pass."""


class Ran(Struct, frozen=True):
    """A command that has ended."""

    exit: int
    stdout: str = ""
    stderr: str = ""

    def document(self) -> dict[str, Any]:
        """What it printed as JSON; CommandFailed when it failed or printed none."""
        try:
            content = json.loads(self.stdout)
        except ValueError:
            content = None
        if self.exit != 0 or not isinstance(content, dict):
            said = (self.stderr or self.stdout).strip()[-_LAST_WORDS:]
            raise CommandFailed(f"a command ended with {self.exit} and said: {said}")
        return content


class Script:
    """One long-lived process of the person: a chat, as far as the bridge knows."""

    def __init__(self, process: trio.Process, state: Path) -> None:
        self._process = process
        self._unread = b""
        self._ask = (str(state / "bin" / "ask"), "hook", "script", "stop")

    @property
    def pid(self) -> int:
        """The exact process that is attached."""
        return self._process.pid

    async def run(self, *words: str) -> Ran:
        """Run `agentworks` with these words below this process."""
        answer = await self.say({"command": [*own_program(), *words]})
        return Ran(**answer)

    async def stop_hook(self) -> str:
        """End a turn: what the hook client printed. Raises NotSo if it failed."""
        answer = await self.say({"command": self._ask})
        if answer["exit"] != 0 or answer["stderr"]:
            raise NotSo(f"the hook ended with {answer}")
        return str(answer["stdout"])

    async def begin_stop_hook(self) -> None:
        """End a turn and leave what the hook client prints unread for now."""
        answer = await self.say({"command": self._ask, "reads": "later"})
        if not answer["begun"]:
            raise NotSo("the hook printed nothing")

    async def finish_stop_hook(self) -> str:
        """Read on: all that the hook client printed."""
        answer = await self.say({"read": True})
        if answer["exit"] != 0:
            raise NotSo(f"the hook ended with {answer}")
        return str(answer["stdout"])

    async def say(self, request: Mapping[str, object]) -> dict[str, Any]:
        """One request line; its answer, which the script's program defines."""
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        await self._process.stdin.send_all(json.dumps(request).encode() + b"\n")
        while b"\n" not in self._unread:
            chunk = await self._process.stdout.receive_some()
            if not chunk:
                raise NotSo(f"the script {self.pid} has ended")
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        answer = json.loads(line)
        assert isinstance(answer, dict)  # noqa: S101 - its program says so
        return answer


class Stage:
    """See the module; made by `open_stage`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.clock = clock
        home, state = folder / "home", folder / "state"
        self.paths = Paths(home, state, home / "config.json")
        self.socket = folder / "server.sock"
        kept = clean_environment(os.environ)
        self.environment = {
            key: value
            for key, value in kept.items()
            if not key.startswith(("XDG_", "AGENTWORKS_"))
        } | {"HOME": str(home), "AGENTWORKS_STATE": str(state)}
        # What listens on `socket`: its words stand before the path.
        self.server_command = (*own_program(), "server", "run", "--socket")
        self.server: trio.Process | None = None
        self.bridge_pid = 0
        self._processes: list[trio.Process] = []

    # ---- the person ------------------------------------------------------------

    async def person(self, *words: str) -> Ran:
        """Run `agentworks` with these words as the person in a terminal."""
        with trio.fail_after(COMMAND_S):
            done = await trio.run_process(
                [*own_program(), *words],
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                cwd="/",
                env=self.environment,
            )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def row(self, name: str) -> AgentRow:
        """What `agents` says of one name; raises NotSo when it is not there."""
        ok = call(self.paths, Agents(name=name), _ANSWER_S)
        for row in decode_answer(ok, AgentsReply).agents:
            return row
        raise NotSo(f"{name} is not among the agents")

    # ---- the server and the bridge ----------------------------------------------

    async def start_server(self) -> int:
        """Start it alone on a private socket; its pid, once it listens."""
        self.server = await self.start(
            "server.log", *self.server_command, str(self.socket)
        )
        await until(
            lambda: self._listening(self.server), "the message server listens", READY_S
        )
        return self.server.pid

    async def stop_server(self) -> None:
        """End it, as a computer that goes down would."""
        if self.server is not None:
            await _end(self.server)
            self.server = None

    async def start_bridge(self, server: str = "") -> int:
        """`bridge start` with the server of this stage, or another; its pid."""
        server = server or f"unix://{self.socket}"
        words = ("--json", "--server", server, "bridge", "start")
        (await self.person(*words)).document()
        hello = decode_answer(call(self.paths, Hello(), _ANSWER_S), HelloReply)
        self.bridge_pid = hello.pid
        return hello.pid

    async def kill_bridge(self) -> None:
        """kill -9, and wait until it has gone."""
        await self._end_bridge(signal.SIGKILL)

    async def _end_bridge(self, how: signal.Signals) -> None:
        pid, self.bridge_pid = self.bridge_pid, 0
        if pid:
            await _end_foreign(pid, how)

    async def _listening(self, process: trio.Process | None) -> bool | None:
        if process is not None and process.returncode is not None:
            raise NotSo(f"it ended: {self.last_words('server.log')}")
        return True if self.socket.exists() else None

    # ---- scripts ------------------------------------------------------------------

    async def start_script(
        self, program: str = demo_script.__file__, *words: str
    ) -> Script:
        """A process that lives until the stage closes, and answers lines."""
        process = await self.start(
            "scripts.log",
            sys.executable,
            "-I",
            "-S",
            program,
            *words,
            pipes=subprocess.PIPE,
        )
        return Script(process, self.paths.state)

    # ---- all of them ----------------------------------------------------------------

    async def close(self) -> int:
        """End every process that was started, by pid; how many there were.

        Also a bridge whose start was given up and that came up all the same. Raises
        NotSo when one of them lives on.
        """
        ended = len(self._processes) + bool(self.bridge_pid)
        with trio.CancelScope(shield=True):
            await self._end_bridge(signal.SIGTERM)
            for process in reversed(self._processes):
                await _end(process)
            self._processes.clear()
            for pid in self._living():
                ended += 1
                await _end_foreign(pid, signal.SIGTERM)
        return ended

    def _living(self) -> list[int]:
        """Everything that was started with the home of this stage."""
        home = self.environment["HOME"]
        return [
            pid
            for pid in pids_of_user()
            if (marks_of(pid) or {}).get("HOME") == home and facts_of(pid) is not None
        ]

    def last_words(self, name: str) -> str:
        """The end of one log file of this stage."""
        try:
            return (self.folder / name).read_text("utf-8", "replace")[-_LAST_WORDS:]
        except FileNotFoundError:
            return ""

    async def start(
        self, log: str, *command: str, pipes: int = subprocess.DEVNULL
    ) -> trio.Process:
        """Start anything; it ends with the stage."""
        # One short open of a local file, as everywhere in the command line.
        with open(self.folder / log, "ab") as errors:  # noqa: ASYNC230
            process = await trio.lowlevel.open_process(
                command,
                stdin=pipes,
                stdout=pipes,
                stderr=errors,
                cwd="/",
                env=self.environment,
            )
        self._processes.append(process)
        return process


@asynccontextmanager
async def open_stage(folder: Path, clock: Clock) -> AsyncIterator[Stage]:
    """A stage in an empty folder; every process is ended at the end."""
    stage = Stage(folder, clock)
    (folder / "home").mkdir(mode=0o700)
    stage.paths.prepare()
    try:
        yield stage
    finally:
        await stage.close()


def own_program() -> Sequence[str]:
    """The command line of `agentworks` with our own interpreter and code."""
    return (sys.executable, "-P", "-m", "bridge")


async def until(
    question: Callable[[], Awaitable[Found | None]], what: str, within_s: float
) -> Found:
    """Ask until there is an answer; raises NotSo with `what` did not come.

    A question that fails for now is asked again.
    """
    why = ""
    with trio.move_on_after(within_s):
        while True:
            try:
                answer = await question()
            except (BridgeError, CommandFailed) as error:
                answer, why = None, f" ({error})"
            if answer is not None:
                return answer
            await trio.sleep(PAUSE_S)
    raise NotSo(f"not within {within_s:g} s: {what}{why}")


async def _end_foreign(pid: int, how: signal.Signals) -> None:
    """End a process that is not our child, and wait until it has gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, how)

    async def gone() -> bool | None:
        return True if facts_of(pid) is None else None

    await until(gone, f"process {pid} ends", END_S)


async def _end(process: trio.Process) -> None:
    if process.returncode is None:
        process.terminate()
        with trio.move_on_after(END_S):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
