"""What is typed into a real tmux pane, and when nothing is."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.routes.tmux import LINE, TmuxPane
from tests.real_clients.rig.waiting import wait_until

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")

# Shows a prompt as a host does, and keeps each line that is entered.
HOST = """printf '%s' "$MARK"; while read -r line; do echo "$line" >> said; done"""


class Terminal:
    """One pane in a tmux server of its own, below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "s"
        self.said = folder / "said"
        self.pane = ""

    def tmux(self, *words: str) -> str:
        """One tmux command."""
        command = ["tmux", "-u", "-S", str(self.socket), "-f", "/dev/null", *words]
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    async def open(self, prompt: str = "\u276f ") -> TmuxPane:
        """A program that shows this prompt."""
        shell = ["env", f"MARK={prompt}", "sh", "-c", HOST]
        size = ["-x", "80", "-y", "10", "-c", str(self.folder)]
        self.tmux("new-session", "-d", *size, *shell)
        self.pane = self.tmux("display-message", "-p", "#{pane_id}")
        shown = prompt.strip()
        await wait_until(lambda: shown in self.screen(), "its prompt", 10)
        return TmuxPane(str(self.socket), self.pane)

    @property
    def pid(self) -> int:
        """The pane's own process."""
        return int(self.tmux("display-message", "-p", "#{pane_pid}"))

    def screen(self) -> str:
        """What it shows."""
        return self.tmux("capture-pane", "-p", "-t", self.pane or "0")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    folder = Path(tempfile.mkdtemp(prefix="aw-"))
    terminal = Terminal(folder)
    yield terminal
    terminal.tmux("kill-server")
    shutil.rmtree(folder)


def anybody(_: int) -> bool:
    return True


@pytest.mark.parametrize("prompt", ["\u276f ", "> ", "\u2502 \u203a "])
async def test_the_line_is_entered_at_an_empty_prompt(
    terminal: Terminal, prompt: str
) -> None:
    pane = await terminal.open(prompt)
    seen: list[int] = []

    def has_program(pid: int) -> bool:
        seen.append(pid)
        return True

    assert await pane.type_line(has_program) == ""

    await wait_until(terminal.said.exists, "the line", 10)
    assert terminal.said.read_text() == f"{LINE}\n"
    assert seen == [terminal.pid]


async def test_nothing_is_typed_into_a_half_typed_prompt(terminal: Terminal) -> None:
    pane = await terminal.open()
    terminal.tmux("send-keys", "-t", terminal.pane, "-l", "half a thought")
    await wait_until(lambda: "thought" in terminal.screen(), "the draft", 10)

    assert "typed there already" in await pane.type_line(anybody)

    assert LINE not in terminal.screen()
    assert "half a thought" in terminal.screen()


@pytest.mark.parametrize("prompt", ["Allow this? (y/n) ", "$ ", "Password:"])
async def test_nothing_is_typed_where_no_prompt_of_a_host_stands(
    terminal: Terminal, prompt: str
) -> None:
    pane = await terminal.open(prompt)

    assert "no prompt" in await pane.type_line(anybody)
    assert LINE not in terminal.screen()


async def test_nothing_is_typed_to_another_program(terminal: Terminal) -> None:
    pane = await terminal.open()

    assert "another program" in await pane.type_line(lambda _: False)
    assert LINE not in terminal.screen()


async def test_nothing_is_typed_into_a_screen_that_is_scrolled_back(
    terminal: Terminal,
) -> None:
    pane = await terminal.open()
    terminal.tmux("copy-mode", "-t", terminal.pane)

    assert "something else" in await pane.type_line(anybody)


async def test_another_pane_a_dead_server_and_an_open_folder_are_refused(
    terminal: Terminal,
) -> None:
    await terminal.open()
    other = TmuxPane(str(terminal.socket), "%77")
    assert "not there" in await other.type_line(anybody)

    nowhere = TmuxPane(str(terminal.folder / "none"), terminal.pane)
    assert await nowhere.type_line(anybody)

    terminal.folder.chmod(0o777)
    pane = TmuxPane(str(terminal.socket), terminal.pane)
    assert "others may change" in await pane.type_line(anybody)
    terminal.folder.chmod(0o700)
    assert LINE not in terminal.screen()


async def test_without_tmux_nothing_happens(terminal: Terminal) -> None:
    pane = TmuxPane(str(terminal.socket), "%0", folders=())

    assert "no tmux" in await pane.type_line(anybody)
