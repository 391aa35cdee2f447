"""The writer thread in trouble: no room, other programs, damage, a moved file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from bridge.core.effects import SaveAttachment, SaveMessage, SavePending
from bridge.errors import (
    EXIT_CONFIG,
    EXIT_UNREACHABLE,
    StorageBroken,
    StorageFull,
    Unavailable,
)
from bridge.store import attachments, opening
from bridge.store import database as database_module
from bridge.store.database import Database
from bridge.store.journal import Journal
from tests.fakes.clock import FakeClock
from tests.store import elsewhere
from tests.store.examples import ATTACHMENT_ID, attachment, in_state, pending
from tests.store.gate import SMALL, hold

LONG_BODIES = 50

# ---- trouble -----------------------------------------------------------------


async def test_a_full_journal_fails_only_what_has_no_room(
    path: Path, fake_clock: FakeClock
) -> None:
    """Small saves, reads and erasing go on; with room the big one succeeds."""
    big = pending(1, "x" * SMALL)
    async with await Journal.open(path, fake_clock, SMALL) as journal:
        await journal.commit([SaveAttachment(attachment())])
        results: list[str] = []

        async def commit_too_much() -> None:
            with pytest.raises(StorageFull, match="no room"):
                await journal.commit([SaveMessage(big)])
            results.append("full")

        async with trio.open_nursery() as nursery:
            gate = await hold(journal, nursery)
            nursery.start_soon(commit_too_much)
            nursery.start_soon(journal.commit, [SaveMessage(pending(2))])
            await trio.testing.wait_all_tasks_blocked()
            gate.opened.set()

        assert results == ["full"]
        assert await journal.deliveries(ATTACHMENT_ID) == [pending(2)]
        await journal.commit([SavePending(in_state(2, pending(2).state, body=None))])


async def test_when_sqlite_undoes_the_whole_group_each_gets_its_own_answer(
    journal: Journal,
) -> None:
    """As some full disks make it do, in the middle of one of the commits."""
    await journal.commit([SaveAttachment(attachment())])
    results: list[str] = []

    def fill_the_disk(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error

    async def commit_too_much() -> None:
        with pytest.raises(StorageFull):
            await journal._database.write(fill_the_disk)
        results.append("full")

    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        nursery.start_soon(journal.commit, [SaveMessage(pending(1))])
        nursery.start_soon(commit_too_much)
        nursery.start_soon(journal.commit, [SaveMessage(pending(2))])
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()

    assert results == ["full"]
    assert await journal.deliveries(ATTACHMENT_ID) == [pending(1), pending(2)]


async def test_a_journal_held_by_another_program_is_unavailable_for_a_while(
    journal: Journal, path: Path
) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="Another program"):
            await journal.commit([SaveAttachment(attachment())])
        other.execute("ROLLBACK")
    finally:
        other.close()

    await journal.commit([SaveAttachment(attachment())])
    assert await journal.attachments() == [attachment()]


async def test_a_reader_that_pins_the_log_is_named_at_the_checkpoint(
    journal: Journal, path: Path
) -> None:
    await journal.commit([SaveAttachment(attachment())])
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN")
        other.execute("SELECT * FROM attachment").fetchall()
        await journal.commit([SaveAttachment(attachment(purpose="new"))])
        with pytest.raises(Unavailable, match="Another program"):
            await journal.checkpoint()
    finally:
        other.close()

    await journal.checkpoint()


async def test_a_log_that_a_reader_made_long_is_short_again_when_it_has_gone(
    journal: Journal, path: Path
) -> None:
    """While it reads, nothing is lost, and the attempt to empty the log says so."""
    log = path.with_name(f"{path.name}-wal")
    await journal.commit([SaveAttachment(attachment())])
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN")
        other.execute("SELECT * FROM attachment").fetchall()
        for number in range(LONG_BODIES):
            await journal.commit([SaveMessage(pending(number, "x" * 100_000))])
        with pytest.raises(Unavailable, match="Another program"):
            await journal.checkpoint()
        pinned = log.stat().st_size
    finally:
        other.close()

    await journal.checkpoint()
    assert pinned > LONG_BODIES * 100_000 > opening.LOG_KEPT_BYTES
    assert log.stat().st_size == 0
    assert len(await journal.deliveries(ATTACHMENT_ID)) == LONG_BODIES


async def test_closing_while_another_program_reads_loses_nothing(
    path: Path, fake_clock: FakeClock
) -> None:
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment())])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN")
        other.execute("SELECT * FROM attachment").fetchall()
        await journal.commit([SaveAttachment(attachment(purpose="last"))])
    other.close()

    async with await Journal.open(path, fake_clock) as journal:
        assert await journal.attachments() == [attachment(purpose="last")]


async def test_closing_never_writes_to_a_file_that_took_our_name(
    path: Path, fake_clock: FakeClock
) -> None:
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment())])
        path.rename(path.with_name("moved"))
        path.write_bytes(b"another program's file")

    assert path.read_bytes() == b"another program's file"


@pytest.mark.parametrize("ask", [Journal.ping, Journal.attachments])
async def test_a_replaced_file_is_noticed_within_a_minute(
    path: Path, fake_clock: FakeClock, ask: Callable[[Journal], Awaitable[object]]
) -> None:
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment())])
        path.rename(path.with_name("moved"))
        await journal.ping()
        fake_clock.advance(database_module.PLACE_CHECK_S)

        with pytest.raises(StorageBroken, match="moved, removed or replaced") as caught:
            await ask(journal)

    assert caught.value.exit_code == EXIT_CONFIG
    assert not path.exists()


async def test_a_checkpoint_never_writes_to_a_file_that_took_our_name(
    path: Path, fake_clock: FakeClock
) -> None:
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment())])
        path.rename(path.with_name("moved"))
        path.write_bytes(b"another program's file")

        with pytest.raises(StorageBroken):
            await journal.checkpoint()

    assert path.read_bytes() == b"another program's file"


async def test_a_broken_journal_is_closed_without_writing(
    path: Path, fake_clock: FakeClock
) -> None:
    """After the first StorageBroken every call fails the same way."""
    log = path.with_name(f"{path.name}-wal")
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment())])
        before = elsewhere.read_bytes(path, log)

        def fail(_: sqlite3.Connection) -> None:
            raise StorageBroken("journal_io", "The disk is gone.")

        with pytest.raises(StorageBroken):
            await journal._database.write(fail)
        with pytest.raises(StorageBroken, match="The disk is gone"):
            await journal.commit([SaveAttachment(attachment())])
        with pytest.raises(StorageBroken):
            await journal.attachments()

    assert elsewhere.read_bytes(path, log) == before


async def test_damage_found_while_running_is_confirmed_by_a_second_process(
    path: Path, fake_clock: FakeClock
) -> None:
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment())])
        await journal.checkpoint()
        damaged = b"\xff" * (path.stat().st_size - 4096)
        elsewhere.write_bytes(path, 4096, damaged)
        await journal._database.read(_forget_read_pages)

        with pytest.raises(StorageBroken, match="would lose") as caught:
            await journal.commit([SaveAttachment(attachment(2))])

    assert caught.value.exit_code == EXIT_CONFIG
    assert path.read_bytes()[4096:] == damaged


async def test_a_sign_of_damage_that_a_second_process_does_not_see_may_be_retried(
    journal: Journal,
) -> None:
    def misread(_: sqlite3.Connection) -> None:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorname = "SQLITE_CORRUPT"
        raise error

    with pytest.raises(StorageBroken, match="second look") as caught:
        await journal._database.write(misread)

    assert caught.value.exit_code == EXIT_UNREACHABLE


async def test_a_closed_journal_refuses_work(path: Path, fake_clock: FakeClock) -> None:
    journal = await Journal.open(path, fake_clock)
    await journal.close()

    with pytest.raises(Unavailable, match="stopping"):
        await journal.commit([])


async def test_what_waits_while_the_journal_closes_is_saved_or_refused(
    path: Path, fake_clock: FakeClock
) -> None:
    journal = await Journal.open(path, fake_clock)

    async def read() -> None:
        with pytest.raises(Unavailable):
            await journal.attachments()

    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        nursery.start_soon(journal.close)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(read)
        nursery.start_soon(journal.commit, [SaveAttachment(attachment())])
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()

    async with await Journal.open(path, fake_clock) as again:
        assert await again.attachments() == [attachment()]


async def test_a_bug_in_the_work_reaches_its_caller_and_spares_the_thread(
    journal: Journal,
) -> None:
    def divide(_: sqlite3.Connection) -> float:
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        await journal._database.read(divide)
    await journal.ping()


async def test_a_confirmed_write_is_no_part_of_a_later_bug(journal: Journal) -> None:
    """An error that cannot even be named fails whoever met it, and nobody else."""
    met, served = threading.Event(), threading.Event()
    results: list[str] = []

    def fail(_: sqlite3.Connection) -> None:
        met.set()
        error = sqlite3.OperationalError("a name that is no text")
        error.sqlite_errorname = 7  # type: ignore[assignment]
        raise error

    async def read_badly() -> None:
        with pytest.raises(AttributeError):
            await journal._database.read(fail)
        results.append("read failed")

    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        nursery.start_soon(journal.commit, [SaveAttachment(attachment())])
        nursery.start_soon(read_badly)
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()
        # Nobody here looks at an answer before the thread is done with all of them.
        assert met.wait(30)
        last = database_module._Request(
            database_module._Kind.READ, lambda _: served.set()
        )
        journal._database._requests.put(last)
        assert served.wait(30)

    assert results == ["read failed"]
    assert await journal.attachments() == [attachment()]


async def test_a_transaction_that_cannot_be_undone_ends_all_work(
    path: Path, fake_clock: FakeClock
) -> None:
    """Else the next commit would save what its caller was told is not saved."""

    def forbid(action: int, what: str | None, *_: object) -> int:
        is_undo = action == sqlite3.SQLITE_TRANSACTION and what == "ROLLBACK"
        return sqlite3.SQLITE_DENY if is_undo else sqlite3.SQLITE_OK

    def fail(connection: sqlite3.Connection) -> None:
        attachments.save(connection, attachment(1))
        connection.set_authorizer(forbid)
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorname = "SQLITE_BUSY"
        raise error

    async with await Journal.open(path, fake_clock) as journal:
        with pytest.raises(StorageBroken, match="SQLITE_AUTH") as caught:
            await journal._database.write(fail)
        with pytest.raises(StorageBroken):
            await journal.commit([SaveAttachment(attachment(2))])

    assert caught.value.exit_code == EXIT_UNREACHABLE
    async with await Journal.open(path, fake_clock) as journal:
        assert await journal.attachments() == []


async def test_a_process_that_never_closed_its_journal_ends_and_keeps_its_word(
    path: Path, fake_clock: FakeClock
) -> None:
    assert elsewhere.confirm_and_die(path, "returned") == 0

    async with await Journal.open(path, fake_clock) as journal:
        assert await journal.attachments() == [attachment()]


async def test_opening_reports_what_is_wrong_and_leaves_no_thread(
    path: Path, fake_clock: FakeClock
) -> None:
    path.mkdir()
    before = threading.active_count()

    with pytest.raises(StorageBroken):
        await Database.open(path, fake_clock)
    assert threading.active_count() == before


def _forget_read_pages(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA shrink_memory")
