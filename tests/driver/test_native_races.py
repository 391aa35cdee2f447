"""What changes while a native way is looked for, found, asked or in use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import Save, SaveAttachment
from bridge.core.records import Attachment, AttachmentState, DeliveryState, ProcessKey
from bridge.core.routing import Parcel, Reached
from bridge.driver import attaching, cutting_short, natives
from bridge.driver.queue import AttachmentQueue
from bridge.errors import StorageFull
from bridge.routes.way import Way
from bridge.server.limits import Settings
from bridge.store.database import Database
from bridge.store.journal import Journal
from tests.driver.desk import incoming, open_bridge
from tests.driver.full_journal import FullJournal
from tests.driver.test_attaching import wish
from tests.driver.test_native_ends import attached, bring, living, states
from tests.fakes.clock import FakeClock
from tests.fakes.message_server import served
from tests.fakes.ways import ScriptedWay

ONE = incoming(1).message_id
NO_WAKE = ("no_wake",)


class Meanwhile(dict[tuple[str, str, ProcessKey], Way]):
    """Extensions; while one is looked for, the person changes their wishes."""

    def __init__(
        self, queue: AttachmentQueue, way: Way, wants: tuple[str, ...]
    ) -> None:
        record = queue.record
        super().__init__(
            {(record.provider, record.session_id, record.process_key): way}
        )
        self._queue = queue
        self._wants = wants

    def get(self, key: object, default: object = None) -> object:  # type: ignore[override]
        self._queue.record = replace(self._queue.record, wants=self._wants)
        return super().get(key, default)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("wants", "is_used"), [(NO_WAKE, False), (("unix:///run/c",), False), ((), True)]
)
async def test_a_way_found_for_an_earlier_wish_is_not_used(
    tmp_path: Path, wants: tuple[str, ...], is_used: bool
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, living("pi"))
        bridge.adapters = Meanwhile(queue, ScriptedWay(), wants)

        await natives.look(bridge, queue)

        assert (queue.native.way is not None) is is_used


async def test_a_wish_that_comes_while_a_way_is_looked_at_is_heard(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, living())

        class Slow(ScriptedWay):
            async def is_open(self) -> bool:
                queue.record = replace(queue.record, wants=NO_WAKE)
                return await super().is_open()

        way = Slow()
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await trio.testing.wait_all_tasks_blocked(0.05)

        assert way.parcels == []
        assert states(queue) == {ONE: DeliveryState.PENDING}


async def test_a_way_that_could_not_be_saved_is_found_again(tmp_path: Path) -> None:
    async with open_bridge(tmp_path, FullJournal) as bridge:
        queue = await attached(bridge, living())
        assert isinstance(bridge.journal, FullJournal)
        bridge.journal.has_room = False
        with pytest.raises(StorageFull):
            await natives.use(bridge, queue, ScriptedWay())
        bridge.journal.has_room = True

        way = ScriptedWay()
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(1)


async def test_a_stopping_bridge_waits_two_seconds_for_a_native_way(
    tmp_path: Path,
) -> None:
    class Silent(ScriptedWay):
        async def offer(self, parcel: Parcel) -> Reached:
            self.parcels.append(parcel)
            await trio.sleep_forever()
            raise AssertionError

    way = Silent()
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, living())
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await trio.testing.wait_all_tasks_blocked(0.05)
        begun = trio.current_time()
        bridge.stopping.set()
        await queue.wait_for_offer()

        assert cutting_short.STOP_WAIT_S <= trio.current_time() - begun < 3.9
        assert states(queue) == {ONE: DeliveryState.AMBIGUOUS}


class Kept(Journal):
    """A journal that remembers each record that it was given."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.records: list[Attachment] = []

    async def commit(self, saves: Sequence[Save]) -> None:
        """See Journal."""
        self.records += [s.attachment for s in saves if isinstance(s, SaveAttachment)]
        await super().commit(saves)


async def test_who_wants_no_waking_is_never_live_without_it(tmp_path: Path) -> None:
    async with (
        served(tmp_path, Settings(), FakeClock()) as server,
        open_bridge(tmp_path, Kept, server) as bridge,
    ):
        assert isinstance(bridge.journal, Kept)
        await attaching.attach(bridge, wish("one", "alice"))
        bridge.journal.records.clear()

        for name, session_id in (("alice", "one"), ("bob", "two")):
            quiet = replace(wish(session_id, name), wants=NO_WAKE)
            await attaching.attach(bridge, quiet)

        live = [
            record
            for record in bridge.journal.records
            if record.state is AttachmentState.ATTACHED
        ]
        assert {record.name for record in live} == {"alice", "bob"}
        assert {record.wants for record in live} == {NO_WAKE}
