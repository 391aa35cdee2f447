"""A writer whose power may be cut: saves, and says what is saved.

    python saver.py JOURNAL SAID full|normal

Two lives of one journal: its birth, commits of two messages each, erased bodies,
checkpoints, an end in order, and a start with more commits. `normal` does the
same with the weaker setting that the product does not use.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import trio

from bridge.clock import SystemClock
from bridge.core.effects import SaveAttachment, SaveMessage, SaveOffered
from bridge.core.records import DeliveryState
from bridge.store.journal import Journal
from tests.store.examples import attachment, in_state, pending

LIVES = 2
ROUNDS = 6
BODY = "x" * 3000


def weaken(connection: sqlite3.Connection) -> None:
    """As many programs set it: the log is not synced at a commit."""
    connection.execute("PRAGMA synchronous = NORMAL")


async def live(path: Path, said: int, mode: str, done: int) -> int:
    """One life; how many rounds are saved at its end."""
    async with await Journal.open(path, SystemClock()) as journal:
        if mode == "normal":
            await journal._database.read(weaken)
        if not await journal.attachments():
            await journal.commit([SaveAttachment(attachment())])
        for _ in range(ROUNDS):
            one, two = 2 * done + 1, 2 * done + 2
            both = [SaveMessage(pending(each, BODY)) for each in (one, two)]
            await journal.commit(both)
            done += 1
            os.write(said, f"{done}\n".encode())
            await journal.commit([SaveOffered(in_state(one, DeliveryState.OFFERED))])
            if done % 3 == 0:
                await journal.checkpoint()
    return done


async def main() -> None:
    """All lives, one after the other."""
    said = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600)
    done = 0
    for _ in range(LIVES):
        done = await live(Path(sys.argv[1]), said, sys.argv[3], done)


if __name__ == "__main__":
    os.umask(0o077)
    trio.run(main)
