"""Terminals for interactive programs: one private tmux server per computer.

Owns that server. Promises that it listens on a socket inside the scratch folder,
reads no configuration, inherits nothing from the tests' environment, and that a
program in it is the pane's own process, with no shell above it.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.real_clients.rig.processes import ProcessRow, process_row
from tests.real_clients.rig.waiting import DEADLINE_S, wait_until

COLUMNS, ROWS = 160, 50


class Terminals:
    """The panes of one scratch computer, each with a name."""

    def __init__(self, socket: Path, environment: Mapping[str, str]) -> None:
        self._socket = socket
        self._environment = environment

    def open(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
    ) -> Pane:
        """Start a program in a new terminal with exactly this environment."""
        clean = ["env", "-i", *(f"{key}={text}" for key, text in environment.items())]
        size = ["-x", str(COLUMNS), "-y", str(ROWS), "-c", str(folder)]
        # A program that ends at once must leave its last words on the screen.
        kept = ["start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";"]
        self.run(*kept, "new-session", "-d", "-s", name, *size, *clean, *command)
        return Pane(self, name)

    def close(self) -> None:
        """End the server, which hangs up on every program in it."""
        if self._socket.exists():
            self.run("kill-server", must_work=False)

    def run(self, *arguments: str, must_work: bool = True) -> str:
        """One tmux command; its output."""
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments],
            env=dict(self._environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        if must_work and done.returncode:
            raise RuntimeError(f"tmux {arguments[0]}: {done.stderr.strip()}")
        return done.stdout


class Pane:
    """One terminal: what it shows, and keys pressed in it."""

    def __init__(self, terminals: Terminals, name: str) -> None:
        self._terminals = terminals
        self.name = name

    def process(self) -> ProcessRow:
        """The program that the terminal was opened for."""
        shown = self._terminals.run(
            "display-message", "-p", "-t", self.name, "#{pane_pid}"
        )
        row = process_row(int(shown))
        assert row is not None, f"the program in {self.name} is gone"
        return row

    def text(self, history: bool = False) -> str:
        """What is on the screen, without blank lines; with scrollback if asked."""
        since = ["-S", "-"] if history else []
        shown = self._terminals.run(
            "capture-pane", "-p", "-J", *since, "-t", self.name, must_work=False
        )
        return "\n".join(line.rstrip() for line in shown.splitlines() if line.strip())

    def press(self, *keys: str) -> None:
        """Press named keys, such as Enter, Escape or C-c."""
        self._terminals.run("send-keys", "-t", self.name, *keys)

    async def press_until(self, key: str, shown: Callable[[str], bool]) -> None:
        """Press a key, again and again, until the screen is as wanted.

        Only for keys that do no harm twice: a program that has just drawn a
        question may throw away what was pressed before it listened.
        """
        presses = itertools.count()

        def pressed() -> bool:
            if shown(self.text()):
                return True
            if next(presses) % 10 == 0:
                self.press(key)
            return False

        await wait_until(pressed, f"the effect of {key} in {self.name}")

    def write(self, text: str) -> None:
        """Type a text and press nothing after it: a draft."""
        self._terminals.run("send-keys", "-t", self.name, "-l", text)

    async def type(self, text: str, deadline_s: float = DEADLINE_S) -> None:
        """Type one line and press Enter once the terminal shows it."""
        self.write(text)
        tail = text.strip()[-20:]
        await wait_until(
            lambda: tail in self.text(), f"{text!r} typed in {self.name}", deadline_s
        )
        self.press("Enter")

    async def wait_text(self, text: str, deadline_s: float = DEADLINE_S) -> str:
        """Wait until the screen shows a text; returns the whole screen."""
        await wait_until(
            lambda: text in self.text(), f"{text!r} shown in {self.name}", deadline_s
        )
        return self.text()
