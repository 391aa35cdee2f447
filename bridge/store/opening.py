"""Opening the journal's file: vetted, looked at, and only then written.

Owns the file's birth (0600 under any umask), its application id and schema
version, and the connection's settings. Promises that a file that is not ours,
is newer, or is damaged is never written.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from msgspec import Struct

from bridge.errors import EXIT_CONFIG, StorageBroken
from bridge.store import faults

APPLICATION_ID = 0x4157_626A  # "AWbj"
SCHEMA_VERSION = 2

# What brings a journal of an older version to the next one.
_CHANGES = {
    1: "ALTER TABLE attachment ADD COLUMN wants TEXT NOT NULL DEFAULT '[]';",
}

# The quota keeps bodies below 40 MiB; the rest is metadata of full mailboxes.
# Past this SQLite itself says no, whatever our own counting missed.
LIMIT_BYTES = 256 * 1024 * 1024
PAGE_BYTES = 4096

# Half of the two seconds that an offer's saves may take.
BUSY_MS = 1000

# A checkpoint gives the log's room back down to this.
LOG_KEPT_BYTES = 4 * 1024 * 1024

_SETTINGS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # only macOS knows the difference
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    f"PRAGMA journal_size_limit = {LOG_KEPT_BYTES}",
)


class Place(Struct, frozen=True):
    """Which file it is, whatever it is called: device and inode."""

    device: int
    inode: int


class Opened(Struct):
    """The one connection that does all work, and a guard that does none.

    SQLite's last connection to close writes the log back into the file. The
    guard reads the file before anything may write, and, closed after the
    working connection, keeps a broken journal's files as they are.
    """

    connection: sqlite3.Connection
    guard: sqlite3.Connection
    path: Path
    place: Place

    def close(self) -> None:
        """Close for good: the log is written back and removed."""
        self.guard.close()
        self.connection.close()

    def close_untouched(self) -> None:
        """Close without writing a byte: the files are evidence."""
        self.connection.close()
        self.guard.close()


def open_file(path: Path, limit_bytes: int = LIMIT_BYTES) -> Opened:
    """Open or create the journal.

    Raises StorageBroken (75 or 78), StorageFull or Unavailable; then nothing
    was written, except that a missing file may have been created.
    """
    try:
        _vet(path)
        _create_if_missing(path, limit_bytes)
        return _open(path, limit_bytes)
    except sqlite3.Error as error:
        if faults.is_ours_to_translate(error):
            raise faults.translate(error, path) from error
        raise _not_understood(path, error) from error
    except OSError as error:
        raise _unusable(path, str(error.strerror)) from error


def place_of(path: Path) -> Place | None:
    """The file that has this name now, or None."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return Place(found.st_dev, found.st_ino)


def check_place(opened: Opened) -> None:
    """Raise StorageBroken when the name no longer means our file."""
    if place_of(opened.path) == opened.place:
        return
    raise StorageBroken(
        "journal_moved",
        f"The journal {opened.path} was moved, removed or replaced while in use;"
        " nothing more is saved.",
        "Put the file back with its -wal file, then start the bridge.",
        exit_code=EXIT_CONFIG,
    )


def _vet(path: Path) -> None:
    for name in (path, *_companions(path)):
        try:
            found = name.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise _unsafe(name, "is not a plain file", "Move it away.")
        if found.st_uid != os.geteuid():
            raise _unsafe(name, "belongs to another user", "Move it away.")
        if found.st_mode & 0o077:
            raise _unsafe(name, "is open to others", f"Run: chmod 600 {name}")
    _refuse_emptied(path)


def _refuse_emptied(path: Path) -> None:
    # Crash: our own birth of the file never leaves a log beside an empty file,
    # and SQLite would delete that log (test_an_emptied_file_keeps_its_log).
    log = _companions(path)[0]
    is_emptied = path.exists() and not path.stat().st_size
    if is_emptied and log.exists() and log.stat().st_size:
        raise faults.corrupt(path)


def _companions(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def _create_if_missing(path: Path, limit_bytes: int) -> None:
    if path.exists() and path.stat().st_size:
        return
    new = path.with_name(f"{path.name}.new")
    for left in (new, *new.parent.glob(f"{new.name}-*")):
        left.unlink(missing_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # SQLite gives its log and shared memory the mode of the file itself.
    os.close(os.open(new, flags, 0o600))
    uri = f"{new.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        _set_up(connection, new, limit_bytes)
        _create_schema(connection)
        # Crash: closing writes the log back too, but without a word when it
        # cannot, and the log does not move with the name
        # (test_a_birth_without_room_gives_no_half_file_the_name).
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    # Crash: becoming a file with a log is the one change that SQLite makes by a
    # rollback journal, and a start that only looks could not undo it. So only a
    # whole file gets the name
    # (test_killed_at_any_write_nothing_is_lost_and_nothing_repeated).
    new.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _open(path: Path, limit_bytes: int) -> Opened:
    uri = path.absolute().as_uri()
    guard = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None)
    try:
        version = _look(guard, path)
        connection = sqlite3.connect(f"{uri}?mode=rw", uri=True, isolation_level=None)
        try:
            _set_up(connection, path, limit_bytes)
            if not version:
                _create_schema(connection)
            elif version < SCHEMA_VERSION:
                _bring_up_to_date(connection, version)
            # From here the guard holds its share of the log.
            guard.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except BaseException:
            connection.close()
            raise
    except BaseException:
        guard.close()
        raise
    found = path.lstat()
    return Opened(connection, guard, path, Place(found.st_dev, found.st_ino))


def _look(guard: sqlite3.Connection, path: Path) -> int:
    """The file's version, 0 for a new one; raises for one that we must not write."""
    application = _number(guard, "PRAGMA application_id")
    version = _number(guard, "PRAGMA user_version")
    tables = _number(guard, "SELECT count(*) FROM sqlite_schema")
    if not (application or version or tables):
        return 0
    if application != APPLICATION_ID:
        raise _foreign(path)
    if not 1 <= version <= SCHEMA_VERSION:
        raise _other_version(path, version)
    found = guard.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise faults.judge_damage(path, "quick_check")
    return version


def _set_up(connection: sqlite3.Connection, path: Path, limit_bytes: int) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise _unusable(path, "this disk cannot hold a write-ahead log")
    for setting in _SETTINGS:
        connection.execute(setting)
    connection.execute(f"PRAGMA max_page_count = {limit_bytes // PAGE_BYTES}")


def _create_schema(connection: sqlite3.Connection) -> None:
    schema = Path(__file__).with_name("schema.sql").read_text("utf-8")
    # Crash: one transaction makes the tables and names the version, so that a
    # file is new or whole (test_a_birth_that_died_is_born_again).
    connection.executescript(
        f"BEGIN IMMEDIATE; {schema}"
        f"PRAGMA application_id = {APPLICATION_ID};"
        f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    )


def _bring_up_to_date(connection: sqlite3.Connection, version: int) -> None:
    # Crash: one transaction changes the tables and names the version, so that a
    # journal is the older one or the newer one, whole
    # (test_a_change_of_the_schema_that_died_is_made_again).
    changes = "".join(_CHANGES[each] for each in range(version, SCHEMA_VERSION))
    connection.executescript(
        f"BEGIN IMMEDIATE; {changes}PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    )


def _number(connection: sqlite3.Connection, question: str) -> int:
    return int(connection.execute(question).fetchone()[0])


def _foreign(path: Path) -> StorageBroken:
    return StorageBroken(
        "journal_foreign",
        f"{path} is another program's database; it was left as it is.",
        "Move it away, or give the bridge another state folder.",
        exit_code=EXIT_CONFIG,
    )


def _other_version(path: Path, version: int) -> StorageBroken:
    return StorageBroken(
        "journal_newer",
        f"The journal {path} has schema version {version}, this bridge knows"
        f" {SCHEMA_VERSION}; it was left as it is.",
        "Install the bridge version that wrote it, or a newer one.",
        exit_code=EXIT_CONFIG,
    )


def _not_understood(path: Path, error: sqlite3.Error) -> StorageBroken:
    return StorageBroken(
        "journal_unknown",
        f"This computer's SQLite cannot work with the journal {path} ({error});"
        " it was left as it is.",
        "Use the Python that wrote it or a newer one, or restore it from a copy.",
        exit_code=EXIT_CONFIG,
    )


def _unsafe(path: Path, what: str, fix: str) -> StorageBroken:
    return StorageBroken(
        "journal_unsafe", f"{path} {what}; it is not used.", fix, exit_code=EXIT_CONFIG
    )


def _unusable(path: Path, why: str) -> StorageBroken:
    return StorageBroken(
        "journal_unusable",
        f"The journal {path} cannot be used: {why}.",
        "Give the bridge a state folder on a local disk that you may write to.",
        exit_code=EXIT_CONFIG,
    )
