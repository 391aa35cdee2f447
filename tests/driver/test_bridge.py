"""Work beside everything else: what ends it ends nothing more."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from bridge.core.caller import OwnSession, ProcessFacts
from bridge.core.effects import SaveAttachment
from bridge.driver import persons
from bridge.driver.bridge import Bridge
from bridge.errors import BridgeError, Refused, StorageBroken, StorageFull
from bridge.local import requests
from tests.core.examples import BOB
from tests.driver.desk import open_bridge
from tests.driver.full_journal import FullJournal

FULL = StorageFull("storage_full", "There is no room.")
BROKEN = StorageBroken("journal_io", "The disk did not take it.")


async def fail_in_a_nursery(error: BridgeError) -> None:
    async def fail() -> None:
        raise error

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail)


async def until_idle(bridge: Bridge) -> None:
    while bridge.nursery.child_tasks:
        await trio.testing.wait_all_tasks_blocked()


async def test_work_that_fails_in_a_nursery_of_its_own_ends_nothing_else(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.start(fail_in_a_nursery, FULL)
        await until_idle(bridge)

        assert not bridge.stopping.is_set()


async def test_a_broken_journal_stops_the_bridge_whoever_meets_it(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.start(fail_in_a_nursery, BROKEN)
        await until_idle(bridge)

        assert bridge.stopping.is_set()
        assert bridge.broken is BROKEN


async def test_a_bug_in_work_is_not_hidden(tmp_path: Path) -> None:
    async def bug() -> None:
        raise KeyError("a bug")

    with pytest.RaisesGroup(KeyError):
        async with open_bridge(tmp_path) as bridge:
            bridge.start(bug)
            await trio.sleep_forever()


async def test_what_found_no_room_is_done_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    tries = 0

    async def save() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise FULL

    async with open_bridge(tmp_path) as bridge:
        await bridge.until_saved(save)

        assert tries == 3


async def test_a_person_sees_that_there_was_no_room_until_there_is(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path, FullJournal) as bridge:
        assert isinstance(bridge.journal, FullJournal)
        bridge.journal.has_room = False
        with pytest.raises(StorageFull):
            await bridge.commit([SaveAttachment(BOB)])
        (warning,) = persons.status(bridge).warnings

        bridge.journal.has_room = True
        await bridge.commit([SaveAttachment(BOB)])

        assert "no room to save" in warning
        assert persons.status(bridge).warnings == ()


async def test_an_agent_sets_no_whole_account_up(tmp_path: Path) -> None:
    facts = ProcessFacts(pid=42, parent_pid=1, start=7, name="claude", uid=1000)
    asked = requests.Prepare(provider="claude", is_account_wide=True)
    async with open_bridge(tmp_path) as bridge:
        with pytest.raises(Refused, match="may not use --global"):
            await persons.prepare(bridge, OwnSession("claude", facts, "s-1"), asked)
