"""One SQLite connection, owned by one thread of its own.

Promises: a write that returned is on the disk (synchronous=FULL); writes that
wait together share one transaction and one fsync, each in a savepoint of its
own, so that a bad one fails alone; a write that began is never abandoned by
cancellation; after the first sign that the file cannot be trusted nothing is
written any more.

Reads go through the same thread and connection. They are few (start-up, and
explicit questions: what runs is in memory), a second connection's long read
would pin the log so that erased bodies stay in it, and a closing second
descriptor is how POSIX locks get lost.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

import trio
from msgspec import Struct

from bridge.clock import Clock
from bridge.errors import BridgeError, StorageBroken, Unavailable
from bridge.store import faults, opening

Result = TypeVar("Result")
Work = Callable[[sqlite3.Connection], Result]

# More in one transaction would only make each of them wait longer.
GROUP_LIMIT = 256

# How often the file's name is compared with the file, at the next request.
PLACE_CHECK_S = 60.0


class Statistics(Struct, frozen=True):
    """What the thread has done: writes confirmed, and transactions synced."""

    writes: int = 0
    transactions: int = 0


class _Kind(Enum):
    WRITE = auto()
    READ = auto()
    LIFE = auto()  # opens or closes the file, so needs no open one


class _Request:
    """One caller's work, and what became of it."""

    def __init__(self, kind: _Kind, work: Work[object]) -> None:
        self.kind = kind
        self.work = work
        self.done = trio.Event()
        self.is_answered = False
        self.result: object = None
        self.error: Exception | None = None


class _GroupLost(Exception):
    """Not only one savepoint is lost: the whole transaction is."""


class Database:
    """The journal's file; made by Database.open, ended by close."""

    def __init__(self, path: Path, clock: Clock, limit_bytes: int) -> None:
        self._path = path
        self._clock = clock
        self._limit_bytes = limit_bytes
        self._token = trio.lowlevel.current_trio_token()
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._opened: opening.Opened | None = None
        self._broken: StorageBroken | None = None
        self._is_closed = False
        self._place_checked = clock.running()
        self._statistics = Statistics()
        # A daemon thread: a crash must end the process, and may end it between
        # any two writes.
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    @classmethod
    async def open(
        cls, path: Path, clock: Clock, limit_bytes: int = opening.LIMIT_BYTES
    ) -> Database:
        """Open or create the file; raises what opening.open_file raises."""
        database = cls(path, clock, limit_bytes)
        database._thread.start()
        try:
            await database._wait_for(_Request(_Kind.LIFE, database._open_file))
        except BaseException:
            database._end_thread()
            raise
        return database

    def statistics(self) -> Statistics:
        """What the thread has done so far."""
        return self._statistics

    async def write(self, work: Work[Result]) -> Result:
        """Run `work` in a transaction; returns when it is on the disk.

        `work` may be run more than once before it is confirmed, and must only
        use its connection. Waits as long as the disk takes: a deadline belongs
        around what depends on the answer. Raises StorageFull, StorageBroken or
        Unavailable; then nothing of it was saved.
        """
        return cast("Result", await self._wait_for(_Request(_Kind.WRITE, work)))

    async def read(self, work: Work[Result]) -> Result:
        """Run `work` outside of any transaction; the same errors as write."""
        return cast("Result", await self._wait_for(_Request(_Kind.READ, work)))

    async def checkpoint(self) -> None:
        """Write the log back and empty it, so that erased bodies are gone.

        Raises Unavailable when another program's read keeps the log.
        """
        await self.read(self._checkpoint)

    async def ping(self) -> None:
        """Prove that a write could begin now; each minute also the file's place."""
        await self.read(_begin_nothing)

    async def close(self) -> None:
        """Write the log back, close, and end the thread. May be called twice."""
        if self._is_closed:
            return
        try:
            with trio.CancelScope(shield=True):
                await self._wait_for(_Request(_Kind.LIFE, self._close_file))
        finally:
            self._end_thread()

    # ---- on trio's side ----------------------------------------------------------

    async def _wait_for(self, request: _Request) -> object:
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._is_closed:
            raise _closed()
        self._requests.put(request)
        # Race: cancellation may not part a caller from a write that happens
        # anyway (test_cancelling_during_a_write_still_brings_its_result).
        with trio.CancelScope(shield=True):
            await request.done.wait()
        if isinstance(request.error, BridgeError):
            raise request.error.with_traceback(None)  # several callers share it
        if request.error is not None:
            raise request.error
        return request.result

    def _end_thread(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._requests.put(None)
            self._thread.join()

    # ---- on the thread -----------------------------------------------------------

    def _run(self) -> None:
        is_last = False
        while not is_last:
            requests, is_last = self._take()
            try:
                self._serve(requests)
            except Exception as error:  # a bug must reach its callers, not hang them
                # Race: whose write was confirmed may not have looked yet
                # (test_a_confirmed_write_is_no_part_of_a_later_bug).
                waiting = [each for each in requests if not each.is_answered]
                _fail(waiting, error)
                self._deliver(waiting)

    def _take(self) -> tuple[list[_Request], bool]:
        """Everything that waits now, at least one; True when it is the last."""
        taken: list[_Request] = []
        request = self._requests.get()
        while request is not None:
            taken.append(request)
            if len(taken) == GROUP_LIMIT:
                return taken, False
            try:
                request = self._requests.get_nowait()
            except Empty:
                return taken, False
        return taken, True

    def _serve(self, requests: Sequence[_Request]) -> None:
        writes = [request for request in requests if request.kind is _Kind.WRITE]
        if writes:
            self._write_together(writes)
            self._deliver(writes)
        for request in requests:
            if request.kind is not _Kind.WRITE:
                self._attempt(request)
                self._deliver([request])

    def _deliver(self, requests: Sequence[_Request]) -> None:
        for request in requests:
            request.is_answered = True
        with suppress(trio.RunFinishedError):  # nobody is left to be told
            self._token.run_sync_soon(_set_all, requests)

    def _write_together(self, requests: Sequence[_Request]) -> None:
        try:
            self._in_one_transaction(requests)
        except Exception as error:
            self._undo()
            found = self._translated(_cause(error))
            if len(requests) == 1 or isinstance(found, StorageBroken | Unavailable):
                _fail(requests, found)
                return
            # Crash: a full disk may undo the whole group. Alone, each gets its
            # own answer (test_a_full_journal_fails_only_what_has_no_room).
            for request in requests:
                self._write_together([request])

    def _in_one_transaction(self, requests: Sequence[_Request]) -> None:
        connection = self._usable().connection
        connection.execute("BEGIN IMMEDIATE")
        for request in requests:
            _in_savepoint(connection, request)
        connection.execute("COMMIT")
        for request in requests:
            if request.error is not None:
                request.error = self._translated(request.error)
        self._count(sum(request.error is None for request in requests))

    def _attempt(self, request: _Request) -> None:
        try:
            is_life = request.kind is _Kind.LIFE
            connection = _NO_CONNECTION if is_life else self._usable().connection
            request.result = request.work(connection)
        except Exception as error:
            _fail([request], self._translated(error))

    def _usable(self) -> opening.Opened:
        if self._broken is not None:
            raise self._broken
        if self._opened is None:
            raise _closed()
        now = self._clock.running()
        if now - self._place_checked >= PLACE_CHECK_S:
            self._place_checked = now
            opening.check_place(self._opened)
        return self._opened

    def _undo(self) -> None:
        try:
            if self._opened is not None and self._opened.connection.in_transaction:
                self._opened.connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            # Crash: a transaction that stays open would confirm, with the next
            # commit, what was refused
            # (test_a_transaction_that_cannot_be_undone_ends_all_work).
            found = faults.failed(self._path, error)
            found.__cause__ = error
            self._stop(found)

    def _translated(self, error: Exception) -> Exception:
        """Our word for it; the first StorageBroken ends all work on the file."""
        found = error
        if self._broken is not None:
            found = self._broken
        elif isinstance(error, sqlite3.Error) and faults.is_ours_to_translate(error):
            found = faults.translate(error, self._path)
            found.__cause__ = error
        if isinstance(found, StorageBroken) and self._broken is None:
            self._stop(found)
        return found

    def _stop(self, error: StorageBroken) -> None:
        # Crash: after a failed fsync a second one may succeed although the
        # pages were lost, so nothing is written again, not even at close
        # (test_a_broken_journal_is_closed_without_writing).
        self._broken = error
        if self._opened is not None:
            opened, self._opened = self._opened, None
            opened.close_untouched()

    def _count(self, writes: int) -> None:
        old = self._statistics
        self._statistics = Statistics(old.writes + writes, old.transactions + 1)

    def _open_file(self, _: sqlite3.Connection) -> None:
        self._opened = opening.open_file(self._path, self._limit_bytes)

    def _checkpoint(self, _: sqlite3.Connection) -> None:
        self._write_back(self._usable())

    def _write_back(self, opened: opening.Opened) -> None:
        opening.check_place(opened)
        found = opened.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if found.fetchone()[0]:
            raise faults.busy(self._path)

    def _close_file(self, _: sqlite3.Connection) -> None:
        if self._opened is None:
            return
        try:
            self._write_back(self._opened)
        except (sqlite3.Error, BridgeError) as error:
            # The next opening writes the log back. Whoever wrote last was told
            # what holds, so a broken file is not news worth failing a stop for.
            self._translated(error)
        if self._opened is not None:
            opened, self._opened = self._opened, None
            opened.close()


_NO_CONNECTION = cast("sqlite3.Connection", None)


def _in_savepoint(connection: sqlite3.Connection, request: _Request) -> None:
    request.error = None
    connection.execute("SAVEPOINT one")
    try:
        request.result = request.work(connection)
    except Exception as error:
        if not connection.in_transaction or faults.is_of_the_file(error):
            raise _GroupLost from error
        connection.execute("ROLLBACK TO one")
        request.error = error
    connection.execute("RELEASE one")


def _cause(error: Exception) -> Exception:
    if isinstance(error, _GroupLost) and isinstance(error.__cause__, Exception):
        return error.__cause__
    return error


def _fail(requests: Sequence[_Request], error: Exception) -> None:
    for request in requests:
        request.error = error


def _set_all(requests: Sequence[_Request]) -> None:
    for request in requests:
        request.done.set()


def _begin_nothing(connection: sqlite3.Connection) -> None:
    """Take the lock that a write needs, look, and write nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("SELECT 1 FROM attachment LIMIT 1").fetchone()
    finally:
        # A disk that fails may have ended it, and must be the error that is told
        # (test_a_disk_that_fails_under_a_ping_is_named).
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _closed() -> Unavailable:
    return Unavailable(
        "journal_closed",
        "The journal is closed, since the bridge is stopping; nothing was saved.",
        "Start the bridge and try again.",
    )
