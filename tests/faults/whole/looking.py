"""What a journal holds on the disk, read beside the daemon that has it open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from tests.faults.whole.oracle import Row

_ROWS = "SELECT attachment_id, message_id, state, body IS NOT NULL, named FROM delivery"
_SUBMISSIONS = "SELECT submission_id FROM submission"
_WATERMARKS = "SELECT attachment_id, watermark FROM attachment"


class OnDisk(Struct, frozen=True):
    """Deliveries, watermarks by lease, and ids of submissions."""

    rows: list[Row]
    watermarks: dict[str, int]
    submissions: set[str]


def read_disk(file: Path) -> OnDisk:
    """Everything that is committed now."""
    with closing(sqlite3.connect(file)) as connection:
        rows = [
            Row(lease, message, state, bool(has_body), bool(named))
            for lease, message, state, has_body, named in connection.execute(_ROWS)
        ]
        watermarks = dict(connection.execute(_WATERMARKS).fetchall())
        submissions = {row[0] for row in connection.execute(_SUBMISSIONS)}
    return OnDisk(rows, watermarks, submissions)
