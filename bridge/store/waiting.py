"""How much of a journal somebody still waits for, read without opening it for work.

Promises to change nothing, also while a bridge has the journal open.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec import Struct

_PENDING = (
    "SELECT count(*) FROM delivery WHERE state IN ('pending', 'offering', 'recalled')"
)
_UNSENT = "SELECT count(*) FROM submission WHERE state NOT IN ('accepted', 'refused')"
_BUSY_S = 2.0


class Waiting(Struct, frozen=True):
    """Messages that were handed to no agent yet, and texts that were never sent."""

    pending: int = 0
    unsent: int = 0


def waiting(journal: Path) -> Waiting | None:
    """The numbers; None for a file that cannot be read, nothing for no file."""
    if not journal.exists():
        return Waiting()
    uri = f"{journal.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as connection:
            return Waiting(
                connection.execute(_PENDING).fetchone()[0],
                connection.execute(_UNSENT).fetchone()[0],
            )
    except sqlite3.Error:
        return None
