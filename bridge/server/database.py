"""The server's SQLite file: how it is opened, and how its errors are named.

Owns the engines, the pragmas and the schema's version. Promises that a commit
is on the disk when `transact` returns (WAL, synchronous=FULL), that the file is
private from its first byte, that a file of another program or of a newer
version is left untouched, and that callers see only our own errors.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError

from bridge.errors import (
    EXIT_CONFIG,
    EXIT_UNREACHABLE,
    BridgeError,
    StorageBroken,
    StorageFull,
    Unavailable,
)
from bridge.server import schema
from bridge.server.limits import Settings

T = TypeVar("T")

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "secure_delete=ON",
    "journal_size_limit=4194304",
)
# Only macOS has a full flush that reaches the disk's platters.
_MACOS_PRAGMAS = ("fullfsync=1", "checkpoint_fullfsync=1")


def _engine(path: Path, settings: Settings, *, writes: bool) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        pool_size=1 if writes else settings.reader_threads,
        max_overflow=0,
        # An exception must never carry a message's text or a token's hash.
        hide_parameters=True,
        pool_timeout=settings.busy_wait_s,
        connect_args={
            "timeout": settings.busy_wait_s,
            "check_same_thread": False,
            # No implicit transactions: the listener below opens each one.
            "isolation_level": None,
        },
    )
    begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
    event.listen(engine, "begin", lambda connection: _begin(connection, begin))
    event.listen(engine, "connect", lambda raw, _: _prepare(raw, writes=writes))
    return engine


def _begin(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement)


def _prepare(raw: sqlite3.Connection, *, writes: bool) -> None:
    pragmas = _PRAGMAS + (_MACOS_PRAGMAS if sys.platform == "darwin" else ())
    for pragma in pragmas if writes else (*pragmas, "query_only=ON"):
        raw.execute(f"PRAGMA {pragma}")


def _private_file(path: Path) -> None:
    """Create the file 0600 first: SQLite gives -wal and -shm the same mode."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        found = path.lstat() if os.path.lexists(path) else None
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise _unusable(path, "is not a plain file")
        if found is not None and found.st_uid != os.geteuid():
            raise _unusable(path, f"belongs to uid {found.st_uid}")
        os.close(os.open(path, flags, 0o600))
    except OSError as error:
        raise _unusable(path, f"cannot be opened ({error.strerror})") from error


def _unusable(path: Path, why: str) -> StorageBroken:
    return StorageBroken(
        "storage_unusable",
        f"The server's database {path} {why}.",
        "Check that it is yours and its folder writable, or move it away.",
        EXIT_CONFIG,
    )


def translated(error: BaseException | None) -> BridgeError:
    """What an SQLite error means for the caller; IOERR and worse end the server."""
    name = getattr(error, "sqlite_errorname", "") or "SQLITE_ERROR"
    # Growing the -shm file on a full disk is reported as an I/O error.
    if name in {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"}:
        return StorageFull(
            "storage_full",
            "The server has no room to store this, and did not store it.",
            "Free some disk space; reading still works.",
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Unavailable(
            "storage_busy",
            "Another program holds the server's database.",
            "Try again in a moment.",
            retry_after_s=1.0,
        )
    return StorageBroken(
        "storage_broken",
        f"The server's database cannot be trusted or written ({name}).",
        "The server stops and keeps the file as it is.",
        EXIT_CONFIG if name == "SQLITE_NOTADB" else EXIT_UNREACHABLE,
    )


def _is_storage_error(error: DBAPIError) -> bool:
    """False for a constraint or a wrong statement: those are bugs of ours."""
    return isinstance(error.orig, sqlite3.OperationalError) or (
        type(error.orig) is sqlite3.DatabaseError
    )


class Database:
    """The two engines of one file: one connection that writes, a few that read.

    All calls block and belong in a thread. Raises StorageBroken when the file
    is of another program, newer, or damaged.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        _private_file(path)
        self.path = path
        self._writer = _engine(path, settings, writes=True)
        self._reader = _engine(path, settings, writes=False)
        try:
            self.transact(self._migrate, writes=True)
        except BaseException:
            self.close()
            raise

    def transact(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        """Run `work` in one transaction; it is durable when this returns."""
        engine = self._writer if writes else self._reader
        try:
            with engine.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            if not _is_storage_error(error):
                raise
            raise translated(error.orig) from error

    def checkpoint(self) -> None:
        """Copy the WAL into the file and empty it: erased text leaves the disk."""
        try:
            with closing(self._writer.raw_connection()) as raw:
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
        except sqlite3.Error as error:
            raise translated(error) from error

    def close(self) -> None:
        """Checkpoint when possible, then close every connection."""
        self._reader.dispose()
        with suppress(BridgeError, DBAPIError):
            self.checkpoint()
        self._writer.dispose()

    def _migrate(self, connection: Connection) -> None:
        application = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        if version == 0 and application == 0 and not _tables(connection):
            schema.metadata.create_all(connection)
            connection.execute(text(f"PRAGMA application_id={schema.APPLICATION_ID}"))
            connection.execute(text(f"PRAGMA user_version={schema.VERSION}"))
            return
        if application != schema.APPLICATION_ID or version != schema.VERSION:
            raise StorageBroken(
                "storage_foreign",
                f"{self.path} is not a database of this version of the server.",
                "Use the version that made it, or name another file.",
                EXIT_CONFIG,
            )


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.execute(text(f"PRAGMA {name}")).scalar_one())


def _tables(connection: Connection) -> list[str]:
    return inspect(connection).get_table_names()
