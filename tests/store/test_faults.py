"""SQLite's errors in our words."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

from bridge.errors import (
    EXIT_CONFIG,
    EXIT_UNREACHABLE,
    StorageBroken,
    StorageFull,
    Unavailable,
)
from bridge.store import faults


def named(name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SQLITE_FULL", StorageFull),
        ("SQLITE_IOERR_SHMSIZE", StorageFull),
        ("SQLITE_BUSY", Unavailable),
        ("SQLITE_BUSY_SNAPSHOT", Unavailable),
        ("SQLITE_LOCKED", Unavailable),
        ("SQLITE_IOERR_FSYNC", StorageBroken),
        ("SQLITE_IOERR_CORRUPTFS", StorageBroken),
        ("SQLITE_READONLY", StorageBroken),
        ("SQLITE_CANTOPEN", StorageBroken),
    ],
)
def test_each_error_is_named_by_what_to_do_next(
    tmp_path: Path, name: str, kind: type[Exception]
) -> None:
    found = faults.translate(named(name), tmp_path / "journal.sqlite3")

    assert type(found) is kind
    assert str(tmp_path) in found.message
    assert found.hint


def test_a_failed_sync_may_be_restarted(tmp_path: Path) -> None:
    found = faults.translate(named("SQLITE_IOERR_FSYNC"), tmp_path / "j")

    assert isinstance(found, StorageBroken)
    assert found.exit_code == EXIT_UNREACHABLE


@pytest.mark.parametrize("name", ["SQLITE_CONSTRAINT_TRIGGER", "SQLITE_ERROR", ""])
def test_our_own_bugs_are_not_translated(name: str) -> None:
    assert not faults.is_ours_to_translate(named(name))
    assert not faults.is_of_the_file(named(name))


def test_an_error_without_a_name_is_not_translated() -> None:
    assert not faults.is_ours_to_translate(sqlite3.ProgrammingError("closed"))
    assert not faults.is_ours_to_translate(ValueError("SQLITE_FULL"))


def test_a_full_disk_is_no_trouble_of_the_file() -> None:
    assert not faults.is_of_the_file(named("SQLITE_FULL"))
    assert faults.is_of_the_file(named("SQLITE_IOERR_WRITE"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", False),
        (b"\xff" * 8192, True),
        (b"SQLite format 3\0" + b"\xff" * 8192, True),
    ],
    ids=["empty", "noise", "noise below a header"],
)
def test_a_second_process_decides_what_is_corrupt(
    tmp_path: Path, content: bytes, expected: bool
) -> None:
    path = tmp_path / "a file.sqlite3"
    path.write_bytes(content)

    assert faults.is_corrupt(path) is expected
    assert path.read_bytes() == content


SIGNS_OF_DAMAGE = ["SQLITE_CORRUPT", "SQLITE_CORRUPT_INDEX", "SQLITE_NOTADB"]


@pytest.mark.parametrize("name", SIGNS_OF_DAMAGE)
def test_damage_that_a_second_process_sees_is_left_to_the_person(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "journal.sqlite3"
    path.write_bytes(b"\xff" * 8192)
    found = faults.translate(named(name), path)

    assert isinstance(found, StorageBroken)
    assert (found.code, found.exit_code) == ("journal_corrupt", EXIT_CONFIG)
    assert "messages not yet shown" in found.message
    assert path.read_bytes() == b"\xff" * 8192


@pytest.mark.parametrize("name", SIGNS_OF_DAMAGE)
def test_damage_that_a_second_process_does_not_see_may_be_tried_again(
    tmp_path: Path, name: str
) -> None:
    """A bad read of a whole file: nobody is asked to move it away."""
    path = tmp_path / "journal.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE whole (value)")
    connection.close()
    found = faults.translate(named(name), path)

    assert isinstance(found, StorageBroken)
    assert (found.code, found.exit_code) == ("journal_misread", EXIT_UNREACHABLE)
    assert name in found.message
    assert "lose" not in found.message


def test_a_file_that_cannot_be_opened_is_not_called_corrupt(tmp_path: Path) -> None:
    assert faults.is_corrupt(tmp_path / "missing") is False


def test_without_a_second_process_nothing_is_called_corrupt(
    tmp_path: Path,
) -> None:
    """A Python that is gone (upgraded under us) proves nothing."""
    path = tmp_path / "noise"
    path.write_bytes(b"\xff" * 8192)
    program = sys.executable
    sys.executable = str(tmp_path / "gone")
    try:
        assert faults.is_corrupt(path) is False
    finally:
        sys.executable = program
