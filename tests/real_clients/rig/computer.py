"""A scratch computer: a home, a project, terminals, and what runs on them.

Owns the folder and everything started in it. Promises a person's environment
with nothing of the tests' in it, and on `stop` the end of every process that was
started with this home, and the last screens saved beside the logs.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import trio

from tests.real_clients.rig.processes import (
    Finished,
    ProcessRow,
    end_processes_of,
    processes_of,
    run_apart,
    runs,
)
from tests.real_clients.rig.terminal import Pane, Terminals

STOP_LIMIT_S = 15.0


class Computer:
    """One person's computer below `folder`, which must be short (socket names).

    `environment` is what a new terminal has; a test may add to it before it
    starts programs. `artefacts` holds every log, screen and output.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "project"
        self.artefacts = folder / "artefacts"
        runtime, temporary = folder / "run", folder / "tmp"
        for made in (self.home, self.project, self.artefacts, runtime, temporary):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "SHELL": "/bin/bash",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TMPDIR": str(temporary),
            "XDG_RUNTIME_DIR": str(runtime),
        }
        self.terminals = Terminals(folder / "tmux", dict(self.environment))
        self._panes: list[Pane] = []
        self._runs = 0

    def record(self, name: str) -> Path:
        """A fresh file stem in the artefacts for one program's output."""
        self._runs += 1
        return self.artefacts / f"{self._runs:02d}-{name}"

    def open_terminal(
        self,
        name: str,
        command: Sequence[str],
        extra: dict[str, str] | None = None,
        folder: Path | None = None,
    ) -> Pane:
        """A program in a new terminal, in the project unless told otherwise."""
        environment = {**self.environment, **(extra or {})}
        pane = self.terminals.open(name, command, environment, folder or self.project)
        self._panes.append(pane)
        return pane

    async def run(
        self,
        *command: str,
        extra: dict[str, str] | None = None,
        folder: Path | None = None,
        deadline_s: float = 30.0,
    ) -> Finished:
        """A command as the person would give it in another terminal."""
        return await run_apart(
            command,
            {**self.environment, **(extra or {})},
            folder or self.project,
            self.record(Path(command[0]).name),
            deadline_s,
        )

    def processes(self, program: str) -> list[ProcessRow]:
        """What runs this program, or this script in an interpreter, on it now."""
        return [row for row in processes_of(self.home) if runs(row.pid, program)]

    async def stop(self) -> None:
        """Save the screens, then end everything, cancelled or not."""
        for pane in self._panes:
            screen = self.artefacts / f"screen-{pane.name}.txt"
            screen.write_text(pane.text(history=True) + "\n")
        self._panes.clear()
        self.terminals.close()
        with trio.move_on_after(STOP_LIMIT_S, shield=True):
            await end_processes_of(self.home)


@contextlib.asynccontextmanager
async def computer_in(folder: Path) -> AsyncIterator[Computer]:
    """A scratch computer that is stopped however the test ends."""
    computer = Computer(folder)
    try:
        yield computer
    finally:
        await computer.stop()
