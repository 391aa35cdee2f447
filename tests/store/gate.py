"""Work that holds the writer thread until the test lets it go."""

from __future__ import annotations

import sqlite3
import threading

import trio
import trio.testing

from bridge.store.journal import Journal

SMALL = 256 * 1024


class Gate:
    """Work that holds the thread until the test opens it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, _: sqlite3.Connection) -> None:
        self.entered.set()
        assert self.opened.wait(30)

    async def wait_entered(self) -> None:
        await trio.to_thread.run_sync(self.entered.wait, 30)


async def hold(journal: Journal, nursery: trio.Nursery) -> Gate:
    gate = Gate()
    nursery.start_soon(journal._database.read, gate)
    await gate.wait_entered()
    return gate
