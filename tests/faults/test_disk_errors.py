"""A disk that fails at one chosen call of the journal's file, from its birth on."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.capabilities import need_strace
from tests.faults.tracing import traced
from tests.journeys.rig.computer import Computer
from tests.journeys.rig.puppets import Denied
from tests.store.elsewhere import CONFIRM_AND_DIE, confirm_and_die

pytestmark = [pytest.mark.crash, pytest.mark.slow]

SAVED = 1
LOOK = """
import sys, trio
from pathlib import Path
from bridge.clock import SystemClock
from bridge.errors import StorageBroken
from bridge.store.journal import Journal

async def main():
    try:
        async with await Journal.open(Path(sys.argv[1]), SystemClock()) as journal:
            print(len(await journal.attachments()))
    except StorageBroken as error:
        print(error.code, error.exit_code)

trio.run(main)
"""


def run_with_fault(path: Path, call: str, fault: str, when: int | str) -> int:
    """Save one attachment elsewhere, with one call on the main file failing.

    `fault` is as strace injects it; `when` is 3 for the third call, 3+ for it and
    all that follow.
    """
    command = [*failing(path, call, fault, when), sys.executable, "-c"]
    script = [CONFIRM_AND_DIE, str(path), "returned"]
    ended = subprocess.run([*command, *script], check=False, stderr=subprocess.DEVNULL)
    return ended.returncode


def failing(path: Path, call: str, fault: str, when: int | str) -> list[str]:
    """What stands before a command to let its calls on the main file fail."""
    traced = [argument for name in names(path) for argument in ("-P", str(name))]
    command = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", *traced]
    return [*command, "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={when}"]


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


@pytest.mark.parametrize("when", [1, 2, 4, 6, 9, 12, "1+", "3+", "5+", "9+"])
def test_a_read_that_fails_is_no_empty_journal_and_no_damage(
    tmp_path: Path, when: int | str
) -> None:
    """Also where SQLite takes it for damage: then a second process looks."""
    need_strace()
    path = tmp_path / "journal.sqlite3"
    assert confirm_and_die(path, "closed") == 0
    before = path.read_bytes()
    command = failing(path, "pread64", "error=EIO", when)
    looked = subprocess.run(
        [*command, sys.executable, "-c", LOOK, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )

    assert looked.stdout.strip() in {f"{SAVED}", "journal_io 75", "journal_misread 75"}
    assert path.read_bytes() == before
    assert attachments_in(path) == SAVED


# ---- a bridge that runs ------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "when"),
    [
        ("fdatasync", "EIO", "1"),
        ("fdatasync", "EIO", "1+"),
        ("pwrite64", "EIO", "1"),
        ("pwrite64", "EROFS", "1+"),
    ],
)
async def test_a_bridge_whose_disk_fails_says_no_and_ends_and_keeps_its_word(
    computer: Computer, call: str, error: str, when: str
) -> None:
    """What it had said yes to is there; what it had not may be said again."""
    need_strace()
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    await alice.send("bob", "before.", "one")
    await computer.until_row("bob", pending=1)
    files = (computer.paths.journal, f"{computer.paths.journal}-wal")
    inject = f"inject={call}:error={error}:when={when}"
    options = [word for file in files for word in ("-P", str(file))]
    async with traced(daemon.pid, *options, "-e", f"trace={call}", "-e", inject):
        with pytest.raises(Denied) as denied:
            await alice.send("bob", "meanwhile.", "two")
        code = await daemon.end()

    assert (code, denied.value.exit) == (75, 75)
    assert "Traceback" not in daemon.said
    assert "what was not confirmed is not saved" in daemon.said
    await computer.start_bridge()
    await alice.send("bob", "meanwhile.", "two")
    offers = ""
    while "meanwhile." not in offers:
        offers += await bob.mail()
    assert (offers.count("before."), offers.count("meanwhile.")) == (1, 1)
    assert await bob.stop() == ""
