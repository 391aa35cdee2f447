"""A disk that fails at one chosen call of the journal's file, from its birth on."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.capabilities import need_strace
from tests.store.elsewhere import CONFIRM_AND_DIE, confirm_and_die

pytestmark = [pytest.mark.crash, pytest.mark.slow]

SAVED = 1


def run_with_fault(path: Path, call: str, fault: str, when: int | str) -> int:
    """Save one attachment elsewhere, with one call on the main file failing.

    `fault` is as strace injects it; `when` is 3 for the third call, 3+ for it and
    all that follow.
    """
    traced = [argument for name in names(path) for argument in ("-P", str(name))]
    command = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", *traced]
    command += ["-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={when}"]
    script = [sys.executable, "-c", CONFIRM_AND_DIE, str(path), "returned"]
    ended = subprocess.run([*command, *script], check=False, stderr=subprocess.DEVNULL)
    return ended.returncode


def names(path: Path) -> list[Path]:
    """The journal's name, and the one it has until it is whole."""
    return [path, path.with_name(f"{path.name}.new")]


def attachments_in(path: Path) -> int | None:
    """How many are kept; None for no file. Fails for a file that is not whole."""
    if not path.exists():
        return None
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = connection.execute("SELECT count(*) FROM attachment").fetchone()
        return int(found[0])
    finally:
        connection.close()


@pytest.mark.parametrize("when", [1, 3, 10, "1+", "7+"])
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_birth_without_room_gives_no_half_file_the_name(
    tmp_path: Path, when: int | str, error: str
) -> None:
    """A log that could not be written back does not move with the name."""
    need_strace()
    path = tmp_path / "journal.sqlite3"
    code = run_with_fault(path, "pwrite64", f"error={error}", when)

    assert attachments_in(path) in ({SAVED} if code == 0 else {None, 0, SAVED})
    assert confirm_and_die(path, "returned") == 0
    assert attachments_in(path) == SAVED


@pytest.mark.parametrize("when", [1, 3, 4, 5, "1+", "4+"])
def test_a_file_that_cannot_be_synced_is_not_said_to_be_saved(
    tmp_path: Path, when: int | str
) -> None:
    need_strace()
    path = tmp_path / "journal.sqlite3"
    code = run_with_fault(path, "fdatasync", "error=EIO", when)

    assert attachments_in(path) in ({SAVED} if code == 0 else {None, 0, SAVED})
    assert confirm_and_die(path, "returned") == 0
    assert attachments_in(path) == SAVED


@pytest.mark.parametrize("call", ["openat", "fsync", "rename"])
@pytest.mark.parametrize("when", [1, 2, 3])
def test_a_birth_killed_around_its_naming_is_born_again(
    tmp_path: Path, call: str, when: int
) -> None:
    """What becomes of the schema is all there or not at all; so will its changes be."""
    need_strace()
    path = tmp_path / "journal.sqlite3"
    code = run_with_fault(path, call, "signal=SIGKILL", when)

    assert attachments_in(path) in ({SAVED} if code == 0 else {None, 0, SAVED})
    assert confirm_and_die(path, "returned") == 0
    assert attachments_in(path) == SAVED
