"""The writer thread: groups, savepoints, order and cancellation."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from bridge.core.effects import SaveAttachment, SaveMessage
from bridge.core.ids import AttachmentId
from bridge.errors import StorageBroken, Unavailable
from bridge.store import database as database_module
from bridge.store.journal import Journal
from tests.fakes.clock import FakeClock
from tests.store.examples import ATTACHMENT_ID, attachment, pending
from tests.store.gate import hold

# ---- groups ------------------------------------------------------------------


async def test_commits_that_wait_together_share_one_transaction(
    journal: Journal,
) -> None:
    await journal.commit([SaveAttachment(attachment())])
    before = journal.statistics()
    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        for number in range(50):
            nursery.start_soon(journal.commit, [SaveMessage(pending(number))])
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()

    after = journal.statistics()
    assert after.writes - before.writes == 50
    assert after.transactions - before.transactions == 1
    assert len(await journal.deliveries(ATTACHMENT_ID)) == 50


async def test_a_long_queue_is_written_in_bounded_groups(journal: Journal) -> None:
    limit = database_module.GROUP_LIMIT
    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        for _ in range(2 * limit):
            nursery.start_soon(journal.commit, [SaveAttachment(attachment())])
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()

    assert journal.statistics().writes == 2 * limit
    assert journal.statistics().transactions == 2


async def test_one_bad_commit_does_not_fail_the_others(journal: Journal) -> None:
    """A savepoint of its own undoes all of the bad one and nothing else."""
    await journal.commit([SaveAttachment(attachment())])
    homeless = pending(99, attachment_id=AttachmentId("att-none"))
    results: list[str] = []

    async def commit_badly() -> None:
        with pytest.raises(sqlite3.IntegrityError):
            await journal.commit([SaveMessage(pending(2)), SaveMessage(homeless)])
        results.append("refused")

    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        nursery.start_soon(journal.commit, [SaveMessage(pending(1))])
        nursery.start_soon(commit_badly)
        nursery.start_soon(journal.commit, [SaveMessage(pending(3))])
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()

    assert results == ["refused"]
    assert await journal.deliveries(ATTACHMENT_ID) == [pending(1), pending(3)]
    assert journal.statistics().transactions == 2


async def test_commits_keep_the_order_they_were_asked_in(journal: Journal) -> None:
    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        for number in range(20):
            following = SaveAttachment(attachment(purpose=f"{number}"))
            nursery.start_soon(journal.commit, [following])
            await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()

    assert await journal.attachments() == [attachment(purpose="19")]


async def test_a_commit_of_nothing_succeeds(journal: Journal) -> None:
    await journal.commit([])

    assert await journal.attachments() == []


# ---- cancellation ------------------------------------------------------------


async def test_cancelling_during_a_write_still_brings_its_result(
    journal: Journal,
) -> None:
    finished = trio.Event()

    async def commit() -> None:
        await journal.commit([SaveAttachment(attachment())])
        finished.set()

    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        nursery.start_soon(commit)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        gate.opened.set()

    assert finished.is_set()
    assert await journal.attachments() == [attachment()]


async def test_a_write_that_was_cancelled_before_it_began_does_not_happen(
    journal: Journal,
) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await journal.commit([SaveAttachment(attachment())])

    assert scope.cancelled_caught
    assert await journal.attachments() == []


async def test_closing_in_a_cancelled_scope_still_closes(
    path: Path, fake_clock: FakeClock
) -> None:
    journal = await Journal.open(path, fake_clock)
    with trio.CancelScope() as scope:
        scope.cancel()
        await journal.close()
    await journal.close()

    assert not path.with_name(f"{path.name}-wal").exists()


async def test_two_that_close_at_once_both_find_it_closed(
    path: Path, fake_clock: FakeClock
) -> None:
    journal = await Journal.open(path, fake_clock)
    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        nursery.start_soon(journal.close)
        nursery.start_soon(journal.close)
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()

    with pytest.raises(Unavailable, match="stopping"):
        await journal.attachments()


# ---- the sign of life ---------------------------------------------------------


class _ReadFails:
    """A disk whose reads fail in a transaction, which SQLite then ends by itself."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, statement: str) -> sqlite3.Cursor:
        if not statement.startswith("SELECT"):
            return self._connection.execute(statement)
        self._connection.execute("ROLLBACK")
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_READ"
        raise error


async def test_a_disk_that_fails_under_a_ping_is_named(journal: Journal) -> None:
    with pytest.raises(StorageBroken, match="SQLITE_IOERR_READ"):
        await journal._database.read(
            lambda connection: database_module._begin_nothing(
                cast("sqlite3.Connection", _ReadFails(connection))
            )
        )
