"""A real journal file for tests of rows: one connection writes, another one reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from bridge.store import attachments, opening
from tests.store.examples import attachment

Result = TypeVar("Result")


class RealFile(Struct, frozen=True):
    """The open file of a test; what `reading` returns came from the file itself."""

    opened: opening.Opened

    @property
    def writing(self) -> sqlite3.Connection:
        """The connection that saves; every statement is a transaction."""
        return self.opened.connection

    def reading(self, question: Callable[..., Result], *values: object) -> Result:
        """What a read of the store says on the other connection."""
        return question(self.opened.guard, *values)

    def count(self, table: str) -> int:
        """How many rows the table has."""
        found = self.opened.guard.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(found[0])

    def empty(self) -> None:
        """Only attachments 1 and 2, and nothing that belongs to them."""
        self.writing.execute("DELETE FROM attachment")
        for number in (1, 2):
            attachments.save(self.writing, attachment(number))


@contextmanager
def real_file(path: Path) -> Iterator[RealFile]:
    """The journal at this path, opened as the bridge opens it, but for one setting.

    Nobody pulls a plug here, so no save waits for the disk.
    """
    opened = opening.open_file(path)
    try:
        opened.connection.execute("PRAGMA synchronous = OFF")
        yield RealFile(opened)
    finally:
        opened.close()
