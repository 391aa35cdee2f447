"""The server's file: private, synced, versioned, its errors named."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from bridge.errors import (
    EXIT_CONFIG,
    BridgeError,
    StorageBroken,
    StorageFull,
    Unavailable,
)
from bridge.server.database import Database, translated
from bridge.server.limits import Settings
from bridge.server.schema import accounts
from tests.faults.capabilities import need_root

SETTINGS = Settings(busy_wait_s=0.05)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.sqlite3"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    opened = Database(path, SETTINGS)
    yield opened
    opened.close()


def pragma(database: Database, name: str, *, writes: bool = True) -> object:
    return database.transact(
        lambda sql: sql.execute(text(f"PRAGMA {name}")).scalar_one(), writes=writes
    )


def test_every_commit_is_synced(database: Database) -> None:
    assert pragma(database, "journal_mode") == "wal"
    assert pragma(database, "synchronous") == 2
    assert pragma(database, "foreign_keys") == 1
    assert pragma(database, "secure_delete") == 1


def test_a_reader_cannot_write(database: Database) -> None:
    assert pragma(database, "query_only", writes=False) == 1


def test_the_files_are_private(path: Path, database: Database) -> None:
    database.transact(
        lambda sql: sql.execute(insert(accounts).values(id="a")), writes=True
    )

    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}

    assert modes == {
        "server.sqlite3": 0o600,
        "server.sqlite3-wal": 0o600,
        "server.sqlite3-shm": 0o600,
    }


def test_a_failed_transaction_leaves_nothing(database: Database) -> None:
    def fail(sql: object) -> None:
        sql.execute(insert(accounts).values(id="a"))  # type: ignore[attr-defined]
        raise LookupError

    with pytest.raises(LookupError):
        database.transact(fail, writes=True)

    found = database.transact(
        lambda sql: sql.execute(select(accounts)).all(), writes=False
    )
    assert found == []


def test_an_erased_text_leaves_the_disk_at_the_checkpoint(
    path: Path, database: Database
) -> None:
    canary = "canary-" * 4
    database.transact(
        lambda sql: sql.execute(insert(accounts).values(id=canary)), writes=True
    )
    database.transact(lambda sql: sql.execute(accounts.delete()), writes=True)

    database.checkpoint()

    stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert canary.encode() not in stored


@pytest.mark.parametrize(
    "change", ["user_version=2", "user_version=0", "application_id=7"]
)
def test_a_foreign_or_newer_file_is_left_alone(path: Path, change: str) -> None:
    Database(path, SETTINGS).close()
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA {change}")
    raw.close()
    before = path.read_bytes()

    with pytest.raises(StorageBroken) as caught:
        Database(path, SETTINGS)

    assert caught.value.exit_code == EXIT_CONFIG
    assert path.read_bytes() == before


def test_a_file_of_noise_is_broken_and_kept(path: Path) -> None:
    path.write_bytes(b"noise " * 1_000)

    with pytest.raises(StorageBroken):
        Database(path, SETTINGS)

    assert path.read_bytes() == b"noise " * 1_000


def test_a_link_in_its_place_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StorageBroken):
        Database(path, SETTINGS)

    assert not (tmp_path / "elsewhere").exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageBroken, match="none"):
        Database(tmp_path / "none" / "server.sqlite3", SETTINGS)


def test_another_writer_means_try_again(path: Path, database: Database) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(Unavailable) as caught:
        database.transact(
            lambda sql: sql.execute(insert(accounts).values(id="a")), writes=True
        )
    other.close()

    assert caught.value.code == "storage_busy"


def test_a_constraint_is_a_bug_and_not_translated(database: Database) -> None:
    def twice(sql: object) -> None:
        for _ in range(2):
            sql.execute(insert(accounts).values(id="a"))  # type: ignore[attr-defined]

    with pytest.raises(IntegrityError) as caught:
        database.transact(twice, writes=True)

    # No values in the text of an error.
    assert "'a'" not in str(caught.value)


def test_a_full_disk_is_storage_full(path: Path, database: Database) -> None:
    pages = pragma(database, "page_count")
    database.transact(
        lambda sql: sql.execute(text(f"PRAGMA max_page_count={pages}")), writes=True
    )

    with pytest.raises(StorageFull):
        database.transact(
            lambda sql: sql.execute(insert(accounts).values(id="x" * 100_000)),
            writes=True,
        )

    assert pragma(database, "page_count") == pages


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SQLITE_FULL", StorageFull),
        ("SQLITE_IOERR_SHMSIZE", StorageFull),
        ("SQLITE_BUSY_SNAPSHOT", Unavailable),
        ("SQLITE_IOERR_FSYNC", StorageBroken),
        ("SQLITE_CORRUPT", StorageBroken),
        ("SQLITE_NOTADB", StorageBroken),
    ],
)
def test_each_error_of_sqlite_has_its_meaning(
    name: str, kind: type[BridgeError]
) -> None:
    original = sqlite3.OperationalError("what SQLite says")
    original.sqlite_errorname = name

    assert isinstance(translated(original), kind)


def test_a_file_that_is_no_database_is_not_tried_again() -> None:
    """A supervisor would start the server for ever."""
    original = sqlite3.DatabaseError("what SQLite says")
    original.sqlite_errorname = "SQLITE_NOTADB"

    assert translated(original).exit_code == EXIT_CONFIG


def put_a_link(place: Path) -> None:
    place.symlink_to(place.with_name("elsewhere"))


@pytest.mark.parametrize("put", [put_a_link, os.mkfifo, Path.mkdir])
def test_what_is_not_our_plain_file_is_refused_and_does_not_hang(
    path: Path, put: Callable[[Path], None]
) -> None:
    put(path)

    with pytest.raises(StorageBroken, match="is not a plain file") as caught:
        Database(path, SETTINGS)

    assert caught.value.exit_code == EXIT_CONFIG
    assert not path.with_name("elsewhere").exists()


def test_a_file_of_another_user_is_refused(path: Path) -> None:
    need_root()
    path.touch(mode=0o600)
    os.chown(path, 65534, 65534)

    with pytest.raises(StorageBroken, match="belongs to uid 65534"):
        Database(path, SETTINGS)
