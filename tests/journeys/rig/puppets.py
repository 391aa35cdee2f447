"""Starting and asking the processes apart from the tests.

Owns their pipes. Promises that a started one has a cleaned environment and no
parent of ours, since the tests may run below a coding agent; that every wait has
a deadline; and that it is ended by closing its stdin or by its own pid.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import trio

PROGRAM = Path(__file__).with_name("puppet.py")
ANSWER_S = 30.0
END_S = 5.0


class Denied(Exception):
    """The daemon said no; what it said."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.code = str(error["code"])
        self.exit = int(error["exit"])
        self.text = f"{error['message']} {error['hint']}".strip()
        super().__init__(f"{self.code}: {self.text}")


class Puppet:
    """One process that does what it is told, one thing at a time."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._received = b""
        self._turn = trio.Lock()
        self.pid = 0

    async def do(self, action: str, **arguments: Any) -> Any:
        """What came of it; raises Denied for a no, EOFError when it is gone.

        Once asked its answer is taken, whoever gives up meanwhile.
        """
        asked = json.dumps({"do": action, **arguments}).encode() + b"\n"
        async with self._turn:
            with trio.CancelScope(shield=True), trio.fail_after(ANSWER_S):
                with suppress(trio.BrokenResourceError):
                    await self._stdin.send_all(asked)
                answer = await self._line()
        if "error" in answer:
            raise Denied(answer["error"])
        return answer["ok"]

    async def greet(self) -> None:
        """Learn its pid."""
        with trio.fail_after(ANSWER_S):
            self.pid = (await self._line())["ok"]

    async def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        await self._end_of_output()

    async def close(self) -> None:
        """Let it end by itself; what does not is killed."""
        await self._stdin.aclose()
        with trio.move_on_after(END_S, shield=True) as within:
            await self._end_of_output()
        if within.cancelled_caught:
            os.kill(self.pid, signal.SIGKILL)
        await self._stdout.aclose()

    async def _line(self) -> dict[str, Any]:
        while b"\n" not in self._received:
            chunk = await self._stdout.receive_some()
            if not chunk:
                raise EOFError(f"process {self.pid} has ended")
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def _end_of_output(self) -> None:
        while await self._stdout.receive_some():
            pass


@asynccontextmanager
async def puppet(
    environment: Mapping[str, str], program: Path = PROGRAM
) -> AsyncIterator[Puppet]:
    """A process whose parent is the top of the process tree."""
    # setsid's child outlives it, so the kernel gives it to pid 1.
    command = ["setsid", "--fork", sys.executable, "-P", str(program)]
    process = await trio.lowlevel.open_process(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(environment),
        cwd=environment["HOME"],
    )
    started = Puppet(process)
    try:
        await process.wait()
        await started.greet()
        yield started
    finally:
        with trio.CancelScope(shield=True):
            await started.close()
