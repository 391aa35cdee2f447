"""The journal's file: born private, vetted, and never written when in doubt."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import psutil
import pytest
import trio

from bridge.core.effects import SaveAttachment, SaveMessage, SaveOffered
from bridge.core.records import DeliveryState
from bridge.errors import EXIT_CONFIG, StorageBroken, Unavailable
from bridge.store import attachments, opening
from bridge.store.journal import Journal
from tests.fakes.clock import FakeClock
from tests.store import elsewhere
from tests.store.examples import ATTACHMENT_ID, attachment, in_state, pending

SCHEMA_FORMAT = 47  # the low byte of the header's schema format number
CANARY = "cnry-store-body-5f1c"
BODIES = 50
PAGES = 21  # of a journal with one attachment


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def files_of(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}*"))


async def make(path: Path, fake_clock: FakeClock) -> bytes:
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment())])
    return path.read_bytes()


async def refusal(path: Path, fake_clock: FakeClock) -> StorageBroken:
    with pytest.raises(StorageBroken) as caught:
        await Journal.open(path, fake_clock)
    assert caught.value.exit_code == EXIT_CONFIG
    return caught.value


# ---- birth -------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
async def test_every_file_is_private_under_any_umask(
    path: Path, fake_clock: FakeClock, mask: int
) -> None:
    before = os.umask(mask)
    try:
        async with await Journal.open(path, fake_clock) as journal:
            await journal.commit([SaveAttachment(attachment())])
            modes = {file.name: file.stat().st_mode & 0o777 for file in files_of(path)}
    finally:
        os.umask(before)

    assert len(modes) == 3
    assert set(modes.values()) == {0o600}


async def test_the_file_says_whose_it_is_and_how_it_is_kept(
    path: Path, fake_clock: FakeClock
) -> None:
    settings = {
        "application_id": opening.APPLICATION_ID,
        "user_version": opening.SCHEMA_VERSION,
        "journal_mode": "wal",
        "synchronous": 2,
        "fullfsync": 1,
        "checkpoint_fullfsync": 1,
        "secure_delete": 1,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "foreign_keys": 1,
        "busy_timeout": opening.BUSY_MS,
        "journal_size_limit": opening.LOG_KEPT_BYTES,
        "max_page_count": opening.LIMIT_BYTES // opening.PAGE_BYTES,
    }

    def ask(connection: sqlite3.Connection) -> dict[str, object]:
        return {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in settings
        }

    async with await Journal.open(path, fake_clock) as journal:
        assert await journal._database.read(ask) == settings


@pytest.mark.parametrize("progress", ["touched", "wal"])
async def test_a_birth_that_died_is_born_again(
    path: Path, fake_clock: FakeClock, progress: str
) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    if progress == "wal":
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()

    await make(path, fake_clock)
    async with await Journal.open(path, fake_clock) as journal:
        assert await journal.attachments() == [attachment()]


async def test_what_a_killed_birth_left_is_cleared_away(
    path: Path, fake_clock: FakeClock
) -> None:
    for name in ("", "-journal", "-wal", "-shm"):
        path.with_name(f"{path.name}.new{name}").write_bytes(b"half")

    async with await Journal.open(path, fake_clock) as journal:
        assert await journal.attachments() == []
    assert files_of(path) == [path]


async def test_a_killed_writer_leaves_what_it_confirmed(
    path: Path, fake_clock: FakeClock
) -> None:
    assert elsewhere.confirm_and_die(path, "killed") == -9
    assert log_of(path).stat().st_size > 0

    async with await Journal.open(path, fake_clock) as journal:
        assert await journal.attachments() == [attachment()]


# ---- refusals: the file stays as it is ---------------------------------------


@pytest.mark.parametrize("setting", ["user_version = 99", "user_version = 0"])
async def test_another_schema_version_is_refused_untouched(
    path: Path, fake_clock: FakeClock, setting: str
) -> None:
    await make(path, fake_clock)
    change(path, f"PRAGMA {setting}")
    before = path.read_bytes()

    found = await refusal(path, fake_clock)

    assert "schema version" in found.message
    assert path.read_bytes() == before
    assert not log_of(path).exists() or not log_of(path).stat().st_size


async def older(path: Path, fake_clock: FakeClock) -> None:
    """A journal as version 1 left it."""
    await make(path, fake_clock)
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE attachment DROP COLUMN wants")
    connection.execute("PRAGMA user_version = 1")
    connection.close()


async def test_a_journal_of_version_1_is_brought_up_to_date_with_its_rows(
    path: Path, fake_clock: FakeClock
) -> None:
    await older(path, fake_clock)

    for _ in range(2):
        async with await Journal.open(path, fake_clock) as journal:
            assert await journal.attachments() == [attachment()]


async def test_a_change_of_the_schema_that_died_is_made_again(
    path: Path, fake_clock: FakeClock
) -> None:
    await older(path, fake_clock)
    died = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1],"
        " isolation_level=None); c.execute('PRAGMA journal_mode = WAL');"
        " c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN IMMEDIATE');"
        f" c.execute({opening._CHANGES[1]!r});"
        " c.execute('PRAGMA user_version = 2'); os._exit(9)"
    )
    done = await trio.run_process([sys.executable, "-c", died, path], check=False)

    assert done.returncode == 9
    async with await Journal.open(path, fake_clock) as journal:
        assert await journal.attachments() == [attachment()]


@pytest.mark.parametrize("born", ["theirs", "ours"])
async def test_another_programs_database_is_refused_untouched(
    path: Path, fake_clock: FakeClock, born: str
) -> None:
    if born == "ours":
        await make(path, fake_clock)
        change(path, "PRAGMA application_id = 1")
    else:
        change(path, "CREATE TABLE theirs (value)")
    path.chmod(0o600)
    before = path.read_bytes()

    found = await refusal(path, fake_clock)

    assert found.code == "journal_foreign"
    assert path.read_bytes() == before


@pytest.mark.parametrize("page", range(PAGES))
@pytest.mark.parametrize("step", [0, 11])
async def test_a_damaged_page_is_found_at_start_and_left_as_it_is(
    path: Path, fake_clock: FakeClock, page: int, step: int
) -> None:
    content = bytearray(await make(path, fake_clock))
    assert len(content) == PAGES * opening.PAGE_BYTES
    noise = bytes(step * (page + at) % 251 for at in range(opening.PAGE_BYTES))
    start = page * opening.PAGE_BYTES
    content[start : start + opening.PAGE_BYTES] = noise
    path.write_bytes(content)

    found = await refusal(path, fake_clock)

    assert found.code == "journal_corrupt"
    assert "would lose" in found.message
    assert path.read_bytes() == content


async def test_an_emptied_file_keeps_its_log(path: Path, fake_clock: FakeClock) -> None:
    """SQLite alone would delete the log, and with it every watermark."""
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment())])
        log = elsewhere.read_bytes(log_of(path))
    log_of(path).write_bytes(log)
    log_of(path).chmod(0o600)
    path.write_bytes(b"")

    found = await refusal(path, fake_clock)

    assert found.code == "journal_corrupt"
    assert log_of(path).read_bytes() == log


async def test_a_cut_log_gives_the_last_whole_commit_or_a_refusal(
    path: Path, fake_clock: FakeClock
) -> None:
    """Never an error that looks like an empty journal with a watermark of 0."""
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment(watermark=1))])
        await journal.checkpoint()
        await journal.commit([SaveAttachment(attachment(watermark=2))])
        content = elsewhere.read_bytes(path)
        log = elsewhere.read_bytes(log_of(path))
    seen = set()
    for cut in (0, 31, 32, 55, 56, len(log) - 1, len(log)):
        folder = path.parent / f"cut-{cut}"
        folder.mkdir(mode=0o700)
        copy = folder / path.name
        for file, held in ((copy, content), (log_of(copy), log[:cut])):
            file.write_bytes(held)
            file.chmod(0o600)
        async with await Journal.open(copy, fake_clock) as reopened:
            [found] = await reopened.attachments()
            seen.add(found.watermark)

    assert seen == {1, 2}


@pytest.mark.parametrize("name", ["", "-wal", "-shm"])
async def test_a_link_in_the_files_place_is_refused(
    path: Path, fake_clock: FakeClock, name: str
) -> None:
    target = path.with_name("target")
    target.write_bytes(b"sentinel")
    path.with_name(f"{path.name}{name}").symlink_to(target)

    found = await refusal(path, fake_clock)

    assert "not a plain file" in found.message
    assert target.read_bytes() == b"sentinel"


async def test_a_file_open_to_others_is_refused_with_the_fix(
    path: Path, fake_clock: FakeClock
) -> None:
    await make(path, fake_clock)
    path.chmod(0o640)

    found = await refusal(path, fake_clock)

    assert found.hint == f"Run: chmod 600 {path}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_another_users_file_is_refused(path: Path, fake_clock: FakeClock) -> None:
    await make(path, fake_clock)
    os.chown(path, 65534, 65534)

    found = await refusal(path, fake_clock)

    assert "another user" in found.message


async def test_a_missing_folder_is_a_clear_refusal(
    tmp_path: Path, fake_clock: FakeClock
) -> None:
    found = await refusal(tmp_path / "missing" / "journal.sqlite3", fake_clock)

    assert "No such file" in found.message


async def test_a_format_that_this_sqlite_does_not_know_is_refused_untouched(
    path: Path, fake_clock: FakeClock
) -> None:
    """A newer SQLite wrote it, or a byte of its header fell over."""
    content = bytearray(await make(path, fake_clock))
    content[SCHEMA_FORMAT] = 5
    path.write_bytes(content)

    found = await refusal(path, fake_clock)

    assert found.code == "journal_unknown"
    assert "unsupported file format" in found.message
    assert path.read_bytes() == content


def test_a_disk_that_cannot_hold_a_log_is_refused(path: Path) -> None:
    """As SQLite says it on some network disks: by keeping its other ways."""
    connection = sqlite3.connect(":memory:")
    try:
        with pytest.raises(StorageBroken, match="write-ahead log") as caught:
            opening._set_up(connection, path, opening.LIMIT_BYTES)
    finally:
        connection.close()
    assert caught.value.exit_code == EXIT_CONFIG


def test_a_refused_opening_leaves_nothing_open(path: Path) -> None:
    """Another program holds a birth that died; once it ends, all is well."""
    before = psutil.Process().num_fds()
    other = sqlite3.connect(path, isolation_level=None)
    path.chmod(0o600)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="Another program"):
        opening.open_file(path)
    other.close()
    assert psutil.Process().num_fds() == before

    opening.open_file(path).close()


# ---- its place, and closing ----------------------------------------------------


def test_the_place_of_a_file_is_the_file_and_not_its_name(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert opening.place_of(one) is None
    for each in (one, other):
        each.touch()

    place = opening.place_of(one)
    assert place is not None
    assert place != opening.place_of(other)
    one.rename(tmp_path / "moved")
    assert opening.place_of(tmp_path / "moved") == place


@pytest.mark.parametrize("change", ["moved", "replaced", "linked"])
def test_a_name_that_means_another_file_is_noticed(path: Path, change: str) -> None:
    opened = opening.open_file(path)
    try:
        opening.check_place(opened)
        moved = path.rename(path.with_name("moved"))
        if change == "replaced":
            path.write_bytes(moved.read_bytes())
        elif change == "linked":
            path.symlink_to(moved)

        with pytest.raises(StorageBroken, match="moved, removed or replaced") as caught:
            opening.check_place(opened)
    finally:
        opened.close_untouched()
    assert caught.value.code == "journal_moved"
    assert caught.value.exit_code == EXIT_CONFIG


def test_closing_untouched_leaves_the_log_to_the_next_opening(path: Path) -> None:
    opened = opening.open_file(path)
    attachments.save(opened.connection, attachment())
    before = elsewhere.read_bytes(path, log_of(path))
    opened.close_untouched()
    assert elsewhere.read_bytes(path, log_of(path)) == before

    opened = opening.open_file(path)
    assert attachments.read_all(opened.guard) == [attachment()]
    opened.close()
    assert files_of(path) == [path]


# ---- erasing -----------------------------------------------------------------


async def erase_all(journal: Journal, path: Path) -> None:
    """Save many bodies, and offer them: none of them is kept any longer."""
    await journal.commit([SaveAttachment(attachment())])
    for number in range(BODIES):
        body = f"{CANARY} {number} " + "x" * 9000
        await journal.commit([SaveMessage(pending(number, body))])
    assert CANARY.encode() in raw_bytes(path)
    for number in range(BODIES):
        erased = in_state(number, DeliveryState.OFFERED)
        await journal.commit([SaveOffered(erased)])


async def test_an_erased_body_is_in_no_file_after_the_checkpoint(
    path: Path, fake_clock: FakeClock
) -> None:
    async with await Journal.open(path, fake_clock) as journal:
        await erase_all(journal, path)
        assert raw_bytes(path).count(CANARY.encode()) >= BODIES  # still in the log
        await journal.checkpoint()

        assert CANARY.encode() not in raw_bytes(path)
        assert len(await journal.deliveries(ATTACHMENT_ID)) == BODIES


async def test_without_our_setting_every_erased_body_would_be_found(
    path: Path, fake_clock: FakeClock
) -> None:
    """What the test above looks for can be seen."""

    def keep_what_is_deleted(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA secure_delete = OFF")

    async with await Journal.open(path, fake_clock) as journal:
        await journal._database.read(keep_what_is_deleted)
        await erase_all(journal, path)
        await journal.checkpoint()

        assert raw_bytes(path).count(CANARY.encode()) >= BODIES


async def test_closing_erases_as_a_checkpoint_does(
    path: Path, fake_clock: FakeClock
) -> None:
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment())])
        await journal.commit([SaveMessage(pending(1, CANARY))])
        await journal.commit([SaveOffered(in_state(1, DeliveryState.OFFERED))])

    assert CANARY.encode() not in raw_bytes(path)
    assert files_of(path) == [path]


def raw_bytes(path: Path) -> bytes:
    return elsewhere.read_bytes(*files_of(path))


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()
