"""The end of an attachment: whole, told, and no trouble to what was under way."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment, SaveSubmission
from bridge.core.events import (
    Detach,
    DetachFinished,
    PersonAttach,
    ServerReplaced,
    TokenRefused,
)
from bridge.core.ids import SubmissionId
from bridge.core.records import (
    AttachmentState,
    DeliveryState,
    OfferOutcome,
    Submission,
    SubmissionState,
)
from bridge.core.tokens import ChildTokens
from bridge.driver import offering, receiving, stepping, verbs
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.driver.reporting import Reports
from bridge.errors import Refused, StorageFull
from tests.core.examples import BOB
from tests.driver.desk import OCCASION, incoming, open_bridge
from tests.driver.full_journal import FullJournal

INTRODUCED = replace(BOB, setup_at=1.0, guidance_at=1_790_000_000.0)
TOKENS = ChildTokens("con-1", "access", "refresh", 2_000_000_000.0)


async def attached(bridge: Bridge) -> AttachmentQueue:
    await bridge.commit([SaveAttachment(INTRODUCED)])
    queue = bridge.new_queue(INTRODUCED)
    bridge.roster.add(queue)
    return queue


def saying(queue: AttachmentQueue) -> Submission:
    """A message of the agent's that the server has not answered."""
    return Submission(
        SubmissionId("sub-1"),
        queue.record.attachment_id,
        queue.record.agent_id,
        "agent:alice",
        "hash",
        number=1,
        body="hello",
        target="agent:alice",
    )


async def test_an_offer_that_outlives_its_attachment_ends_quietly(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1000.0)

        async def emit(offer_id: str, text: str) -> OfferOutcome:
            at = bridge.clock.wall()
            await stepping.step(bridge, queue, Detach(at))
            await stepping.step(bridge, queue, DetachFinished(at))
            return OfferOutcome.EMITTED

        outcome = await offering.make_offer(queue, OCCASION, bridge.clock, emit)

        assert outcome is OfferOutcome.EMITTED
        assert list(bridge.roster) == []
        assert await bridge.journal.attachments() == []


@pytest.mark.parametrize("delivery", ["admitted", "processed"])
async def test_an_acknowledgement_after_a_detach_is_refused(
    tmp_path: Path, delivery: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        at = bridge.clock.wall()
        await stepping.step(bridge, queue, Detach(at))
        await stepping.step(bridge, queue, DetachFinished(at))

        with pytest.raises(Refused) as refused:
            await verbs.ack(bridge, queue, incoming(1).message_id, delivery)

        assert refused.value.code == "detached"


async def test_a_save_after_a_detach_brings_no_row_back(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        at = bridge.clock.wall()
        await stepping.step(bridge, queue, Detach(at))
        await stepping.step(bridge, queue, DetachFinished(at))

        with pytest.raises(Refused):
            await queue.commit([SaveAttachment(replace(queue.record, purpose="new"))])

        assert await bridge.journal.attachments() == []


async def test_the_end_of_a_lease_is_one_commit(tmp_path: Path) -> None:
    async with open_bridge(tmp_path, FullJournal) as bridge:
        assert isinstance(bridge.journal, FullJournal)
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        await queue.commit([SaveSubmission(saying(queue))])
        before = bridge.journal.statistics().transactions
        await stepping.step(bridge, queue, ServerReplaced(bridge.clock.wall()))

        assert bridge.journal.statistics().transactions == before + 1
        with sqlite3.connect(tmp_path / "journal.sqlite3") as other:
            states = other.execute(
                "SELECT a.state, d.state, s.state FROM attachment a, delivery d,"
                " submission s"
            ).fetchall()
        other.close()
        assert states == [("replaced", "withheld", "orphaned")]


async def test_without_room_a_lease_goes_on_whole(tmp_path: Path) -> None:
    async with open_bridge(tmp_path, FullJournal) as bridge:
        assert isinstance(bridge.journal, FullJournal)
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        bridge.journal.has_room = False

        with pytest.raises(StorageFull):
            await stepping.step(bridge, queue, ServerReplaced(bridge.clock.wall()))

        assert queue.record.state is AttachmentState.ATTACHED
        assert len(queue.in_state(DeliveryState.PENDING)) == 1


async def test_the_end_of_a_lease_is_no_progress(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        reports = Reports(queue, bridge.clock)
        assert reports.due_progress() == incoming(1).sequence - 1
        await stepping.step(bridge, queue, Detach(bridge.clock.wall()))

        assert reports.due_progress() is None


async def test_what_an_old_stream_says_of_its_end_is_not_heard(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        at, old = bridge.clock.wall(), trio.CancelScope()
        queue.stream = old
        await bridge.leases.save(queue.record.attachment_id, TOKENS)
        await stepping.step(bridge, queue, PersonAttach(at, BOB.process_key))
        await stepping.step(bridge, queue, TokenRefused(at), old)

        assert queue.record.state is AttachmentState.ATTACHED
        assert await bridge.leases.read(queue.record.attachment_id) == TOKENS
        assert queue.stream is not None


async def test_a_submission_that_has_moved_is_not_begun(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        row = saying(queue)
        await queue.commit([SaveSubmission(row)])
        queue.hand_over([row], [])

        assert await Reports(queue, bridge.clock).begin(row) is None


async def test_the_sender_meets_a_submission_that_is_still_there(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        row = saying(queue)
        await queue.commit([SaveSubmission(row)])
        begun = await Reports(queue, bridge.clock).begin(row)

        assert begun is not None
        assert begun.state is SubmissionState.IN_FLIGHT
