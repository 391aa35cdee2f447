"""Waiting reads: nothing falls between a look and a wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from bridge.log import open_log
from bridge.server import messages
from bridge.server.attachments import Attached, AttachRequest, attach
from bridge.server.auth import LOCAL_ACCOUNT, LOCAL_CONNECTION, Caller, open_parent
from bridge.server.database import Database
from bridge.server.limits import Settings
from bridge.server.mailbox import Reading
from bridge.server.parties import Side
from bridge.server.rooms import Rooms, furnish, waited_page
from bridge.server.store import Unit
from tests.fakes.clock import FakeClock

PARENT = Caller(LOCAL_CONNECTION, LOCAL_ACCOUNT, None)


@pytest.fixture
async def rooms(
    tmp_path: Path, fake_clock: FakeClock, nursery: trio.Nursery
) -> AsyncIterator[Rooms]:
    settings = Settings()
    database = Database(tmp_path / "server.sqlite3", settings)
    with open(tmp_path / "log", "w") as log:
        opened = furnish(database, settings, fake_clock, open_log(log, fake_clock))
        nursery.start_soon(opened.hub.run)
        await opened.store.write(
            lambda unit: open_parent(unit, LOCAL_ACCOUNT, LOCAL_CONNECTION, "here")
        )
        yield opened
        await opened.store.close()


def attaching(unit: Unit, name: str) -> Attached:
    return attach(unit, PARENT, AttachRequest("script", name, "here", name))


def reading(attached: Attached) -> Reading:
    side = Side(attached.agent_id, LOCAL_ACCOUNT, attached.name, attached.agent_id)
    return Reading(side, None, 0, 10, is_filtered=True)


async def test_a_message_between_look_and_wait_is_seen(rooms: Rooms) -> None:
    bob = await rooms.store.write(lambda unit: attaching(unit, "bob"))
    alice = await rooms.store.write(lambda unit: attaching(unit, "alice"))
    sender = Side(alice.agent_id, LOCAL_ACCOUNT, "alice", alice.agent_id, "script")
    looks = 0

    async def send() -> None:
        await rooms.store.write(
            lambda unit: messages.send(
                unit,
                sender,
                LOCAL_CONNECTION,
                messages.Outgoing("hello", target="bob"),
            )
        )

    def look(unit: Unit) -> Reading:
        nonlocal looks
        looks += 1
        if looks == 1:
            # Stored while nobody is subscribed yet: its wake reaches no one.
            trio.from_thread.run(send)
        return reading(bob)

    with trio.fail_after(10):
        page = await waited_page(rooms, look, 25.0)

    assert [message.message for message in page.messages] == ["hello"]


async def test_a_read_waits_no_longer_than_it_asked(rooms: Rooms) -> None:
    bob = await rooms.store.write(lambda unit: attaching(unit, "bob"))

    page = await waited_page(rooms, lambda unit: reading(bob), 0.01)

    assert page.messages == []
    assert rooms.hub.statistics() == {"waiting": 0, "due": 0}


async def test_a_cancelled_write_is_committed_and_wakes(rooms: Rooms) -> None:
    bob = await rooms.store.write(lambda unit: attaching(unit, "bob"))
    alice = await rooms.store.write(lambda unit: attaching(unit, "alice"))
    sender = Side(alice.agent_id, LOCAL_ACCOUNT, "alice", alice.agent_id, "script")

    with rooms.hub.subscribe(bob.agent_id) as woken, trio.CancelScope() as scope:

        def send(unit: Unit) -> messages.Sent:
            # The caller goes away in the middle of its transaction.
            trio.from_thread.run_sync(scope.cancel)
            return messages.send(
                unit,
                sender,
                LOCAL_CONNECTION,
                messages.Outgoing("hello", target="bob"),
            )

        await rooms.store.write(send)
        with trio.CancelScope(shield=True), trio.fail_after(10):
            await woken.wait()

    page = await waited_page(rooms, lambda unit: reading(bob), 0.0)
    assert [message.message for message in page.messages] == ["hello"]
