"""The list at a terminal: arrow keys, numbers, `all N` typed out, and a way back."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridge.cli.picking import Picker
from tests.cli.conftest import FakeDaemon

UP, DOWN, ENTER, ESCAPE = b"\x1b[A", b"\x1b[B", b"\r", b"\x1b"


def pressed(count: int, *keys: bytes, may_take_all: bool = True) -> Picker:
    picker = Picker(count, may_take_all)
    for key in keys:
        picker.press(key)
    return picker


def test_the_line_beside_the_list_is_chosen_alone_and_is_none_of_all() -> None:
    picker = Picker(2, True, has_more=True)
    for key in [*letters("all 2"), ENTER]:
        picker.press(key)
    last = Picker(2, True, has_more=True)
    for key in [UP, ENTER]:
        last.press(key)

    assert picker.chosen == (0, 1)
    assert last.chosen == (2,)


def letters(text: str) -> list[bytes]:
    return [character.encode() for character in text]


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ([ENTER], (0,)),
        ([DOWN, ENTER], (1,)),
        ([DOWN, DOWN, DOWN, ENTER], (0,)),
        ([UP, ENTER], (2,)),
        ([b"\x1bOB", b"k", b"j", b"\n"], (1,)),
        ([b"3", ENTER], (2,)),
        ([b"3", b"\x7f", b"2", ENTER], (1,)),
        ([*letters("all 3"), ENTER], (0, 1, 2)),
        ([*letters("ALL 3"), ENTER], (0, 1, 2)),
        ([DOWN, *letters("all 2"), ENTER], ()),
        ([*letters("all"), ENTER], ()),
        ([b"0", ENTER], ()),
        ([b"4", ENTER], ()),
        ([b"\x1b[C", b"\t", b"\xff", ENTER], (0,)),
    ],
)
def test_what_the_keys_choose(keys: list[bytes], chosen: tuple[int, ...]) -> None:
    picker = pressed(3, *keys)

    assert picker.chosen == chosen
    assert picker.is_over is bool(chosen)
    assert picker.is_wrong is not bool(chosen)


def test_all_is_not_taken_where_one_is_meant() -> None:
    assert pressed(3, *letters("all 3"), ENTER, may_take_all=False).chosen == ()


@pytest.mark.parametrize("key", [ESCAPE, b"q", b"\x03", b"\x04"])
def test_it_can_be_given_up(key: bytes) -> None:
    picker = pressed(3, DOWN, key)

    assert picker.is_over
    assert picker.chosen == ()


# ---- in a real terminal ------------------------------------------------------------


class Terminal:
    """A command in a terminal of its own; what it shows, and what is typed."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self.shown = ""

    def until(self, text: str) -> None:
        """Read the screen until it shows this."""
        while text not in self.shown:
            ready, _, _ = select.select([self._master], [], [], 30)
            assert ready, self.shown
            self.shown += os.read(self._master, 4096).decode(errors="replace")

    def type(self, keys: bytes) -> None:
        """Press these."""
        os.write(self._master, keys)

    def is_cooked(self) -> bool:
        """Does the terminal echo and gather lines, as before?"""
        flags = termios.tcgetattr(self._master)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON)


@contextmanager
def in_terminal(folder: Path, *words: str, term: str = "xterm") -> Iterator[Terminal]:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (12, 100))
    with subprocess.Popen(
        [sys.executable, "-m", "bridge", *words],
        stdin=slave,
        stdout=subprocess.DEVNULL,
        stderr=slave,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "TERM": term},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as process:
        os.close(slave)
        try:
            yield Terminal(master, process)
            assert process.wait(30) is not None
        finally:
            process.kill()
            os.close(master)


@pytest.fixture
def many(daemon: FakeDaemon) -> FakeDaemon:
    """Three attachments, of which one is to be ended."""
    row = {"provider": "claude", "session": "s-1", "state": "attached", "route": "hook"}
    daemon.replies["prepare"] = {"caller": "person", "sessions": []}
    daemon.replies["agents"] = {
        "agents": [{"name": name, **row} for name in ("alice", "bob", "carol\x1b[2J")]
    }
    daemon.replies["detach"] = {"name": "bob", "queued": []}
    return daemon


def test_the_arrow_keys_choose_what_is_detached(
    many: FakeDaemon, tmp_path: Path
) -> None:
    with in_terminal(tmp_path, "detach") as terminal:
        terminal.until("Esc to leave")
        assert "> 1  alice" in terminal.shown
        terminal.type(DOWN)
        terminal.until("> 2  bob")
        terminal.type(ENTER)

    assert terminal.process.returncode == 0
    assert many.asked[-1] == {"verb": "detach", "name": "bob"}
    assert "\x1b[2J" not in terminal.shown


@pytest.mark.parametrize("key", [ESCAPE, b"\x03"])
def test_giving_up_changes_nothing_and_leaves_the_terminal_as_it_was(
    many: FakeDaemon, tmp_path: Path, key: bytes
) -> None:
    with in_terminal(tmp_path, "detach") as terminal:
        terminal.until("Esc to leave")
        assert not terminal.is_cooked()
        terminal.type(key)
        terminal.process.wait(30)
        assert terminal.is_cooked()

    assert terminal.process.returncode == 130
    assert "detach" not in [request["verb"] for request in many.asked]


def test_a_terminal_that_cannot_move_its_cursor_is_asked_for_a_number(
    many: FakeDaemon, tmp_path: Path
) -> None:
    with in_terminal(tmp_path, "detach", term="dumb") as terminal:
        terminal.until("(1 to 3)")
        assert "\x1b" not in terminal.shown
        terminal.type(b"2\n")

    assert many.asked[-1]["name"] == "bob"


def test_a_list_longer_than_the_screen_moves_with_the_mark(
    many: FakeDaemon, tmp_path: Path
) -> None:
    rows = many.replies["agents"]["agents"]
    many.replies["agents"]["agents"] = [
        rows[0] | {"name": f"agent-{number}"} for number in range(1, 31)
    ]
    with in_terminal(tmp_path, "detach") as terminal:
        terminal.until("Esc to leave")
        assert "agent-30" not in terminal.shown
        terminal.type(UP)
        terminal.until("> 30  agent-30")
        terminal.type(ENTER)

    assert many.asked[-1]["name"] == "agent-30"
