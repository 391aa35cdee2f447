"""Attachments found by what is known of them, however they change."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.ids import AttachmentId
from bridge.core.records import AttachmentState, ProcessKey
from bridge.driver.queue import AttachmentQueue
from bridge.driver.roster import Roster
from tests.core.examples import BOB
from tests.driver.desk import open_bridge
from tests.driver.test_receiving import attached
from tests.fakes.clock import FakeClock
from tests.fakes.memory_journal import MemoryJournal

KEYS = [ProcessKey("boot", pid, 1) for pid in (1, 2)]
STATES = list(AttachmentState)


def new_queue(number: int, key: ProcessKey, state: AttachmentState) -> AttachmentQueue:
    """An attachment of this process."""
    record = replace(
        BOB,
        attachment_id=AttachmentId(f"att-{number}"),
        process_key=key,
        state=state,
        created_at=float(number),
    )
    return AttachmentQueue(record, (), (), (), MemoryJournal(), FakeClock())


@given(
    some.lists(
        some.tuples(
            some.sampled_from(["add", "remove", "move", "state", "look"]),
            some.integers(0, 3),
            some.sampled_from(KEYS),
            some.sampled_from(STATES),
        )
    )
)
def test_what_is_found_by_process_is_what_a_look_at_all_would_find(
    steps: list[tuple[str, int, ProcessKey, AttachmentState]],
) -> None:
    roster = Roster()
    queues = [new_queue(number, KEYS[0], STATES[0]) for number in range(4)]
    for what, number, key, state in steps:
        queue = queues[number]
        if what == "add":
            roster.add(queue)
        elif what == "remove":
            roster.remove(queue)
        elif what in ("move", "state"):
            change = {"process_key": key} if what == "move" else {"state": state}
            queue._remember(SaveAttachment(replace(queue.record, **change)))
        for each in KEYS:
            present = [
                one
                for one in roster
                if one.record.process_key == each and one.is_present
            ]
            assert roster.of_process(each) == present
            newest = max(present, key=lambda one: one.record.created_at, default=None)
            assert roster.present(BOB.provider, BOB.session_id, each) is newest


async def test_an_attachment_that_moved_to_another_process_is_found_there(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        before, after = queue.record.process_key, KEYS[1]
        assert bridge.roster.of_process(before) == [queue]

        await queue.commit([SaveAttachment(replace(queue.record, process_key=after))])

        assert bridge.roster.of_process(before) == []
        assert bridge.roster.of_process(after) == [queue]
