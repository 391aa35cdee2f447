"""The watchdog is fed by a bridge that works, and by no other (fault row 84)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio
import trio.testing

from bridge.errors import StorageBroken
from bridge.service.notify import Notifier
from bridge.service.watchdog import keep_fed
from bridge.store.journal import Journal
from tests.fakes.clock import FakeClock
from tests.real_clients.rig.waiting import wait_until
from tests.service.rig.manager import Manager
from tests.service.rig.manager import manager as listening
from tests.store.gate import hold

WATCHDOG_S = 60.0


@pytest.fixture
def manager() -> Iterator[Manager]:
    with listening() as hearing:
        yield hearing


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    async with await Journal.open(tmp_path / "journal.sqlite3", FakeClock()) as opened:
        yield opened


class Log:
    def __init__(self) -> None:
        self.codes: list[str] = []

    def warning(self, event: str, **values: object) -> None:
        self.codes.append(str(values["code"]))


async def feed(nursery: trio.Nursery, manager: Manager, journal: Journal) -> Log:
    """A bridge's watchdog task, and what it logs."""
    log = Log()
    notifier = Notifier(manager.address, WATCHDOG_S)
    nursery.start_soon(keep_fed, notifier, journal.ping, log)
    return log


async def test_a_working_bridge_feeds_its_watchdog_three_times_in_its_time(
    manager: Manager, mock_clock: trio.testing.MockClock
) -> None:
    async def round_trip() -> None:
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        notifier = Notifier(manager.address, WATCHDOG_S)
        nursery.start_soon(keep_fed, notifier, round_trip, Log())
        for _ in range(3):
            await trio.testing.wait_all_tasks_blocked()
            assert manager.words() == [b"WATCHDOG=1"]
            mock_clock.jump(WATCHDOG_S / 3)
        nursery.cancel_scope.cancel()


async def test_a_blocked_writer_starves_the_watchdog(
    manager: Manager, journal: Journal
) -> None:
    async with trio.open_nursery() as nursery:
        gate = await hold(journal, nursery)
        await feed(nursery, manager, journal)
        await trio.testing.wait_all_tasks_blocked()
        assert manager.words() == []

        gate.opened.set()
        assert await wait_until(manager.words, "a word") == [b"WATCHDOG=1"]
        nursery.cancel_scope.cancel()


async def test_a_journal_that_another_program_holds_starves_the_watchdog(
    manager: Manager, journal: Journal, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "journal.sqlite3")) as other:
        other.execute("BEGIN IMMEDIATE")
        async with trio.open_nursery() as nursery:
            log = await feed(nursery, manager, journal)
            await wait_until(lambda: log.codes, "a word that was kept back")
            nursery.cancel_scope.cancel()

    assert manager.words() == []


async def test_a_round_trip_writes_nothing(journal: Journal, tmp_path: Path) -> None:
    log = tmp_path / "journal.sqlite3-wal"
    await journal.ping()
    before = log.stat().st_size

    for _ in range(5):
        await journal.ping()

    assert log.stat().st_size == before


async def test_a_broken_journal_ends_the_feeding_with_its_own_error(
    manager: Manager,
) -> None:
    async def broken() -> None:
        raise StorageBroken("journal_moved", "It was moved.")

    with pytest.raises(StorageBroken):
        await keep_fed(Notifier(manager.address, WATCHDOG_S), broken, Log())
    assert manager.words() == []


async def test_where_nobody_watches_nothing_is_asked_of_the_journal() -> None:
    async def never() -> None:
        raise AssertionError("asked")

    await keep_fed(Notifier(), never, Log())
