"""What SQLite's errors mean, in our words.

Owns the one translation of sqlite3 errors. Promises that a journal is called
corrupt only when a fresh second process could read all of it and finds it corrupt
too: a failed read of a healthy file can look the same.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import cast

from bridge.errors import (
    EXIT_CONFIG,
    BridgeError,
    StorageBroken,
    StorageFull,
    Unavailable,
)

CHECK_DEADLINE_S = 60

# A read that fails looks like damage to SQLite, here too. So before damage is
# believed every byte must have been readable, and a second look must still see it
# (test_a_read_that_fails_is_no_empty_journal_and_no_damage).
_CHECK = """
import os, sqlite3, sys

def verdict():
    connection = sqlite3.connect(sys.argv[1], uri=True)
    try:
        return connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorname", "SQLITE_ERROR")
    finally:
        connection.close()

def read_all(name):
    if os.path.exists(name):
        file = os.open(name, os.O_RDONLY)
        for at in range(0, os.fstat(file).st_size, 4096):
            os.pread(file, 4096, at)
        os.close(file)

word = verdict()
if word != "ok":
    try:
        read_all(sys.argv[2])
        read_all(sys.argv[2] + "-wal")
        word = verdict()
    except OSError:
        word = "SQLITE_IOERR_READ"
print(word)
"""

_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_BLOCKED = ("SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")
_KNOWN = (*_FULL, *_BUSY, *_DAMAGED, *_BLOCKED)

_LOSS = (
    "Moving it away would lose the messages not yet shown, what waits to be sent,"
    " receipts not yet sent, and which messages were already shown."
)


def error_name(error: sqlite3.Error) -> str:
    """SQLite's own name of the error, such as SQLITE_IOERR_FSYNC."""
    return getattr(error, "sqlite_errorname", "") or ""


def is_ours_to_translate(error: Exception) -> bool:
    """True for what the disk or another program did; False for our own bugs."""
    return isinstance(error, sqlite3.Error) and error_name(error).startswith(_KNOWN)


def is_of_the_file(error: Exception) -> bool:
    """True when not only this statement but the file itself is in trouble."""
    return is_ours_to_translate(error) and not error_name(
        cast("sqlite3.Error", error)
    ).startswith(_FULL)


def translate(error: sqlite3.Error, path: Path) -> BridgeError:
    """The error to raise instead; may start a second process and wait for it."""
    name = error_name(error)
    if name.startswith(_FULL):
        return storage_full(path)
    if name.startswith(_BUSY):
        return busy(path)
    if name.startswith(_DAMAGED):
        return judge_damage(path, name)
    return failed(path, error)


def failed(path: Path, error: sqlite3.Error) -> StorageBroken:
    """The disk, or something below SQLite, does not do what it must."""
    return StorageBroken(
        "journal_io",
        "The disk did not take or give the journal"
        f" {path} ({error_name(error) or error});"
        " what was not confirmed is not saved.",
        "Check the disk and the folder's permissions, then start the bridge again.",
    )


def busy(path: Path) -> Unavailable:
    """Another program holds a lock on the file."""
    return Unavailable(
        "journal_busy",
        f"Another program holds the journal {path}; nothing was saved or erased.",
        "End that program (a database shell?) and try again.",
    )


def storage_full(path: Path) -> StorageFull:
    """No room on the disk, or the journal reached its largest size."""
    return StorageFull(
        "storage_full",
        f"There is no room to save in {path}; nothing new is taken or sent.",
        "Make room on that disk; waiting messages can still be read.",
    )


def corrupt(path: Path) -> StorageBroken:
    """The journal is damaged, surely; a person decides what happens to it."""
    return StorageBroken(
        "journal_corrupt",
        f"The journal {path} is damaged; it was left as it is. {_LOSS}",
        "Restore it from a copy, or move it and its -wal file away yourself.",
        exit_code=EXIT_CONFIG,
    )


def is_corrupt(path: Path) -> bool:
    """True when a fresh process, reading only, finds the file damaged."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        found = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHECK, uri, str(path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CHECK_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    word = found.stdout.decode(errors="replace").strip()
    is_damage = word.startswith(_DAMAGED) or not word.startswith("SQLITE_")
    return found.returncode == 0 and word != "ok" and is_damage


def judge_damage(path: Path, sign: str) -> StorageBroken:
    """What to raise after a sign of damage: a second process decides."""
    if is_corrupt(path):
        return corrupt(path)
    return StorageBroken(
        "journal_misread",
        f"The journal {path} could not be read ({sign}), but a second look finds"
        " no damage.",
        "Check the disk, then start the bridge again.",
    )
