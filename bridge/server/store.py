"""Transactions for the rest of the room: one writer, a few readers, and wakes.

Owns the server's threads (with limiters of their own, so that nothing else of
the process waits behind them) and the unit of work. Promises that writes happen
one after another, that commit order is the order of the sequences given inside,
that a commit is never abandoned, and that subscribers are woken after the
commit and before anybody can answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import trio
from sqlalchemy import Connection, Executable, Row

from bridge.clock import Clock
from bridge.core.ids import new_id
from bridge.errors import StorageBroken
from bridge.server.database import Database
from bridge.server.limits import Settings
from bridge.server.presence import Presence
from bridge.server.wakes import Hub

T = TypeVar("T")


class Unit:
    """One transaction: its connection, its moment, and whom it will wake.

    `now` is wall seconds, the same for the whole transaction.
    """

    def __init__(
        self, sql: Connection, settings: Settings, clock: Clock, presence: Presence
    ) -> None:
        self._sql = sql
        self._clock = clock
        self.settings = settings
        self.presence = presence
        self.now = clock.wall()
        self.woken: set[str] = set()

    # Statements of the busy paths are built once, as constants with named
    # parameters: building one costs more than SQLite takes to answer it.

    def run(self, statement: Executable, **parameters: object) -> int:
        """Execute; returns how many rows it changed."""
        return int(self._sql.execute(statement, parameters).rowcount)

    def row(self, statement: Executable, **parameters: object) -> Row[Any] | None:
        """The first row, or None."""
        return self._sql.execute(statement, parameters).first()

    def rows(self, statement: Executable, **parameters: object) -> Sequence[Row[Any]]:
        """All rows; the statement bounds them."""
        return self._sql.execute(statement, parameters).all()

    def value(self, statement: Executable, **parameters: object) -> Any:  # noqa: ANN401
        """The first column of the first row, or None; of whatever type it has."""
        return self._sql.execute(statement, parameters).scalar()

    def new_id(self, prefix: str) -> str:
        """A fresh id of this prefix."""
        return new_id(prefix, self.now, self._clock.random_bytes(10))

    def random_hex(self, size: int) -> str:
        """`size` unpredictable bytes as hexadecimal."""
        return self._clock.random_bytes(size).hex()

    def wake(self, *keys: str | None) -> None:
        """After the commit, whoever waits for one of these looks again."""
        self.woken.update(key for key in keys if key)


class Store:
    """The database as the event loop uses it. Close it when the server ends.

    `broken` is set when the database can no longer be trusted; the server then
    stops with `failure`.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Clock,
        presence: Presence,
        hub: Hub,
    ) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._presence = presence
        self._hub = hub
        self._readers = trio.CapacityLimiter(settings.reader_threads)
        self._writer = trio.CapacityLimiter(1)
        self.broken = trio.Event()
        self.failure: StorageBroken | None = None

    async def read(self, work: Callable[[Unit], T]) -> T:
        """Run `work` in a read transaction in a thread."""
        return (await self._transact(work, writes=False))[1]

    async def write(self, work: Callable[[Unit], T]) -> T:
        """Run `work` in the one write transaction in a thread.

        Durable when this returns; an exception of `work` rolls all of it back.
        """
        # Race: a cancelled caller still waits for its commit, and no checkpoint
        # stands between the commit and the wake
        # (test_a_cancelled_send_is_stored_and_wakes_its_reader).
        unit, result = await self._transact(work, writes=True)
        self._hub.notify(unit.woken)
        return result

    async def checkpoint(self) -> None:
        """Empty the WAL, between two writes."""
        await trio.to_thread.run_sync(self._database.checkpoint, limiter=self._writer)

    async def close(self) -> None:
        """Checkpoint and close, after the write that may still be running."""
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._database.close, limiter=self._writer)

    async def _transact(
        self, work: Callable[[Unit], T], *, writes: bool
    ) -> tuple[Unit, T]:
        def in_thread() -> tuple[Unit, T]:
            return self._database.transact(in_transaction, writes=writes)

        def in_transaction(sql: Connection) -> tuple[Unit, T]:
            unit = Unit(sql, self._settings, self._clock, self._presence)
            return unit, work(unit)

        limiter = self._writer if writes else self._readers
        try:
            return await trio.to_thread.run_sync(in_thread, limiter=limiter)
        except StorageBroken as error:
            self.failure = error
            self.broken.set()
            raise
