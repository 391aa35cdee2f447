"""One of our own programs as a process, from its start to its end.

Promises that each wait is for a condition, that a program which ended instead is
shown with its last words, and that only a process started here is signalled.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.real_clients.rig.waiting import wait_until

END_S = 15.0
_LAST_WORDS = 3000


class Running:
    """A started program; `said` is what it wrote so far."""

    def __init__(self, process: trio.Process, record: Path) -> None:
        self._process = process
        self._record = record

    @property
    def pid(self) -> int:
        """Of the program itself."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._process.poll()

    @property
    def said(self) -> str:
        """Its output and errors, in order."""
        return self._record.read_text(errors="replace")

    async def until(self, question: Callable[[], object], what: str) -> None:
        """Wait until the answer is truthy; fail at once when the program ended."""

        def ask() -> bool:
            is_over = self._process.poll() is not None
            assert not is_over, f"{what}: it ended: {self.said[-_LAST_WORDS:]}"
            return bool(question())

        await wait_until(ask, what)

    async def end(self) -> int:
        """Its exit code, once it has ended by itself."""
        with trio.fail_after(END_S):
            return await self._process.wait()

    async def stop(self) -> int:
        """Ask it to end in order; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return await self.end()

    async def kill(self) -> None:
        """End it at once, as a crash does."""
        self._process.kill()
        await self.end()


@asynccontextmanager
async def running(
    command: Sequence[str],
    environment: Mapping[str, str],
    record: Path,
) -> AsyncIterator[Running]:
    """A program of this interpreter, in a session of its own; killed at the end."""
    with record.open("ab") as output:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-P", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
            cwd=environment["HOME"],
            start_new_session=True,
        )
    try:
        yield Running(process, record)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
