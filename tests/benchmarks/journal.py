"""What the journal adds to SQLite alone: the same rows, as many in a commit."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bridge.clock import SystemClock
from bridge.core.effects import SaveAttachment, SaveMessage
from bridge.core.ids import MessageId
from bridge.store.journal import Journal
from tests.benchmarks.table import median
from tests.store.examples import attachment, pending

# What a stream brings at once.
PAGE = 20
_MESSAGES = 4_000
_ROUNDS = 5
_BODY = "Shall we look at the parser together? The tests are in, and it is green."


class Rates(Struct, frozen=True):
    """Messages a second: through the journal, and by SQLite alone."""

    journal: float
    bare: float


async def journal_rate(folder: Path) -> Rates:
    """Pages of messages, one commit each; medians of rounds that alternate."""
    folder.mkdir(mode=0o700)
    kept, bare = [], []
    for number in range(_ROUNDS):
        place = folder / f"journal-{number}.sqlite3"
        kept.append(await _journal_s(place))
        bare.append(bare_seconds(place, folder / f"bare-{number}.sqlite3"))
    return Rates(_MESSAGES / median(kept), _MESSAGES / median(bare))


async def _journal_s(place: Path) -> float:
    async with await Journal.open(place, SystemClock()) as journal:
        await journal.commit([SaveAttachment(attachment())])
        began = time.perf_counter()
        for first in range(0, _MESSAGES, PAGE):
            page = [_message(number) for number in range(first, first + PAGE)]
            await journal.commit(page)
        return time.perf_counter() - began


def _message(number: int) -> SaveMessage:
    row = pending(number + 1)
    return SaveMessage(
        replace(row, message_id=MessageId(f"msg-{number}"), body=f"{number}: {_BODY}")
    )


def bare_seconds(journal: Path, place: Path) -> float:
    """Seconds that the same rows take in the same tables, a page in each commit."""
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as kept:
        made = kept.execute(
            "SELECT sql FROM sqlite_master WHERE tbl_name = 'delivery' AND sql NOTNULL"
        ).fetchall()
        rows = kept.execute("SELECT * FROM delivery").fetchall()
    with closing(sqlite3.connect(place, isolation_level=None)) as bare:
        bare.execute("PRAGMA journal_mode=WAL")
        bare.execute("PRAGMA synchronous=FULL")
        for (sql,) in made:
            bare.execute(sql)
        holders = ", ".join("?" * len(rows[0]))
        began = time.perf_counter()
        for first in range(0, len(rows), PAGE):
            bare.execute("BEGIN IMMEDIATE")
            page = rows[first : first + PAGE]
            bare.executemany(f"INSERT INTO delivery VALUES ({holders})", page)
            bare.execute("COMMIT")
        return time.perf_counter() - began
