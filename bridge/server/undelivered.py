"""How many messages a server's file holds that no agent has acknowledged.

Promises to change nothing, also while a server has the file open.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_UNDELIVERED = (
    "SELECT count(*) FROM messages WHERE recipient_id IS NOT NULL"
    " AND delivery NOT IN ('admitted', 'processed') AND retracted = ''"
)
_BUSY_S = 2.0


def undelivered(database: Path) -> int | None:
    """The number; None for a file that cannot be read, 0 without one."""
    if not database.exists():
        return 0
    uri = f"{database.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as connection:
            return int(connection.execute(_UNDELIVERED).fetchone()[0])
    except sqlite3.Error:
        return None
