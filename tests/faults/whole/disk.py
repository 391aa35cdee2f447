"""The journal of a machine's daemon: the real one, in step with virtual time.

The writer thread and its file are real. Only while the thread works does trio's
thread stand still, so that the same events always meet in the same order; how
long a commit takes, what finds no room and which commit is a daemon's last is
the machine's choice.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import trio

from bridge.clock import Clock
from bridge.core.effects import Save
from bridge.core.ids import AttachmentId
from bridge.core.tokens import ChildTokens
from bridge.errors import StorageFull
from bridge.store import leases as lease_files
from bridge.store.database import Database
from bridge.store.journal import Journal
from bridge.store.leases import Leases

NAME = "journal.sqlite3"


class Disk:
    """What is wrong with it, for all daemons of one story."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.full_for = 0
        self.last_commit: int | None = None


class _InStep(SimpleQueue[Any]):
    """Whoever puts a request in waits until the thread has served it."""

    def __init__(self, served: threading.Semaphore) -> None:
        super().__init__()
        self._served = served

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        super().put(item)
        if item is not None:
            self._served.acquire()


class DatabaseInStep(Database):
    """See the module."""

    def __init__(self, path: Path, clock: Clock, limit_bytes: int) -> None:
        super().__init__(path, clock, limit_bytes)
        self._served = threading.Semaphore(0)
        self._requests = _InStep(self._served)

    def _deliver(self, requests: Sequence[Any]) -> None:
        super()._deliver(requests)
        for _ in requests:
            self._served.release()


class JournalInStep(Journal):
    """See the module. `die` is called when the last commit is on the disk."""

    disk: Disk
    is_dead: Callable[[], bool]
    die: Callable[[], None]

    @classmethod
    @asynccontextmanager
    async def on(
        cls,
        folder: Path,
        clock: Clock,
        disk: Disk,
        is_dead: Callable[[], bool],
        die: Callable[[], None],
    ) -> AsyncIterator[JournalInStep]:
        """Open in this folder; closed at the end, as a copy that nobody reads."""
        database = await DatabaseInStep.open(folder / NAME, clock)
        async with cls(database) as journal:
            journal.disk, journal.is_dead, journal.die = disk, is_dead, die
            yield journal

    async def commit(self, saves: Sequence[Save]) -> None:
        """See Journal."""
        await trio.lowlevel.checkpoint_if_cancelled()
        with trio.CancelScope(shield=True):
            await trio.sleep(self.disk.delay_s)
            if self.is_dead():
                return  # what a dead daemon would still have done
            if self.disk.full_for:
                self.disk.full_for -= 1
                raise StorageFull("storage_full", "There is no room.")
            await super().commit(saves)
        self._count()

    def _count(self) -> None:
        if self.disk.last_commit is not None:
            self.disk.last_commit -= 1
            if self.disk.last_commit <= 0:
                self.disk.last_commit = None
                self.die()


def copied(old: Path, new: Path) -> None:
    """What a start finds after the process that had `old` open is gone."""
    new.mkdir(mode=0o700)
    for end in ("", "-wal"):
        file = old / f"{NAME}{end}"
        if file.exists():
            shutil.copy(file, new)


class LeasesInStep(Leases):
    """The lease files, without a thread of their own."""

    async def read(self, attachment_id: AttachmentId) -> ChildTokens | None:
        """See Leases."""
        await trio.lowlevel.checkpoint()
        return lease_files._read_tokens(self._path(attachment_id))

    async def save(self, attachment_id: AttachmentId, tokens: ChildTokens) -> None:
        """See Leases."""
        await trio.lowlevel.checkpoint()
        lease_files._write_tokens(self._path(attachment_id), tokens)

    async def erase(self, attachment_id: AttachmentId) -> None:
        """See Leases."""
        await trio.lowlevel.checkpoint()
        lease_files._erase_tokens(self._path(attachment_id))
