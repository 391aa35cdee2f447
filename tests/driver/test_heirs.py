"""What an ended lease leaves goes to the agent's next attachment, once."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment, SaveForeignReceipt, SaveSubmission
from bridge.core.ids import AttachmentId, SessionId
from bridge.core.records import (
    AttachmentState,
    DeliveryState,
    OfferOutcome,
    Receipt,
    SubmissionState,
)
from bridge.driver import attaching, heirs, offering, receiving
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.driver.reporting import Reports
from tests.core.examples import BOB, refused_submission
from tests.driver.desk import OCCASION, Route, incoming, open_bridge

INTRODUCED = replace(BOB, setup_at=1.0, guidance_at=1_790_000_000.0)


async def attached(
    bridge: Bridge, number: int, session: str = "session"
) -> AttachmentQueue:
    """A queue of bob's, with an attachment id of its own."""
    record = replace(
        INTRODUCED,
        attachment_id=AttachmentId(f"att-{number}"),
        session_id=SessionId(session),
    )
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    return queue


async def offered(
    bridge: Bridge, queue: AttachmentQueue, outcome: OfferOutcome
) -> None:
    await receiving.receive(bridge, queue, incoming(1), 1000.0)
    route = Route(outcome)
    await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)


async def end(queue: AttachmentQueue, state: AttachmentState) -> None:
    await queue.commit([SaveAttachment(replace(queue.record, state=state))])


def states(queue: AttachmentQueue) -> list[DeliveryState]:
    return [row.state for row in queue.deliveries.values()]


@pytest.mark.parametrize("state", [AttachmentState.REPLACED, AttachmentState.REVOKED])
async def test_what_an_ended_lease_left_unsure_is_named_by_the_next(
    tmp_path: Path, state: AttachmentState
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, 1)
        await offered(bridge, before, OfferOutcome.UNKNOWN)
        after = await attached(bridge, 2, "another session")
        await end(before, state)

        await heirs.pass_on(bridge, before)

        route = Route(OfferOutcome.EMITTED)
        await offering.make_offer(after, OCCASION, bridge.clock, route.emit)
        assert f"{incoming(1).message_id} may not have reached you" in route.texts[0]
        assert incoming(1).body not in route.texts[0]


async def test_a_row_is_never_in_two_attachments(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, 1)
        await offered(bridge, before, OfferOutcome.UNKNOWN)
        after = await attached(bridge, 2)
        await end(before, AttachmentState.REPLACED)

        await heirs.pass_on(bridge, before)
        await heirs.pass_on(bridge, before)

        assert states(before) == []
        assert states(after) == [DeliveryState.AMBIGUOUS]
        assert await bridge.journal.deliveries(before.record.attachment_id) == []
        (kept,) = await bridge.journal.deliveries(after.record.attachment_id)
        assert kept == after.deliveries[kept.message_id]
        await receiving.receive(bridge, after, incoming(1), 1000.0)
        assert states(after) == [DeliveryState.AMBIGUOUS]


@pytest.mark.parametrize("session", ["session", "another session"])
async def test_what_was_surely_offered_follows_only_its_own_chat(
    tmp_path: Path, session: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, 1)
        await offered(bridge, before, OfferOutcome.EMITTED)
        after = await attached(bridge, 2, session)
        await end(before, AttachmentState.REPLACED)

        await heirs.pass_on(bridge, before)

        moved = [DeliveryState.OFFERED] if session == "session" else []
        assert states(after) == moved


async def test_what_is_said_while_the_name_moves_goes_out_under_the_new_lease(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before, after = await attached(bridge, 1), await attached(bridge, 2)
        row = replace(
            refused_submission(),
            attachment_id=before.record.attachment_id,
            agent_id=BOB.agent_id,
            state=SubmissionState.ORPHANED,
            refusal_code="lease_ended",
            body="hello",
        )
        said = Receipt(
            before.record.attachment_id, incoming(1).message_id, "processed", 1.0
        )
        await before.commit([SaveSubmission(row), SaveForeignReceipt(said)])
        await end(before, AttachmentState.REPLACED)

        await heirs.pass_on(bridge, before)

        (moved,) = after.submissions.values()
        assert moved.state is SubmissionState.QUEUED
        assert moved.attachment_id == after.record.attachment_id
        assert [each.delivery for each in after.unsent_receipts()] == ["processed"]
        assert not before.submissions
        assert not before.unsent_receipts()


@pytest.mark.parametrize("state", [AttachmentState.OFFLINE, AttachmentState.ATTACHED])
async def test_a_lease_that_may_go_on_keeps_what_is_its_own(
    tmp_path: Path, state: AttachmentState
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, 1)
        await offered(bridge, before, OfferOutcome.UNKNOWN)
        await attached(bridge, 2)
        await end(before, state)

        await heirs.pass_on(bridge, before)

        assert states(before) == [DeliveryState.AMBIGUOUS]


async def test_without_a_next_attachment_nothing_is_moved(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, 1)
        await offered(bridge, before, OfferOutcome.UNKNOWN)
        await end(before, AttachmentState.REPLACED)

        await heirs.pass_on(bridge, before)

        assert states(before) == [DeliveryState.AMBIGUOUS]


@pytest.mark.parametrize(
    "state",
    [AttachmentState.DETACHING, AttachmentState.REPLACED, AttachmentState.OFFLINE],
)
async def test_nothing_is_moved_to_an_heir_that_ends_meanwhile(
    tmp_path: Path, state: AttachmentState
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, 1)
        await offered(bridge, before, OfferOutcome.UNKNOWN)
        after = await attached(bridge, 2)
        await end(before, AttachmentState.REPLACED)

        async with trio.open_nursery() as nursery, after.turn:
            nursery.start_soon(heirs.pass_on, bridge, before)
            await trio.testing.wait_all_tasks_blocked()
            await end(after, state)

        assert states(before) == [DeliveryState.AMBIGUOUS]
        assert states(after) == []


@pytest.mark.parametrize(
    "state",
    [AttachmentState.DETACHING, AttachmentState.REPLACED, AttachmentState.OFFLINE],
)
async def test_nothing_is_moved_to_an_attachment_that_ends_in_its_attach(
    tmp_path: Path, state: AttachmentState
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before, after = await attached(bridge, 1), await attached(bridge, 2)
        kept = replace(
            refused_submission(), attachment_id=before.record.attachment_id, told=False
        )
        await before.commit([SaveSubmission(kept)])

        async with trio.open_nursery() as nursery, after.turn:
            nursery.start_soon(attaching._supersede, bridge, after, 1.0)
            await trio.testing.wait_all_tasks_blocked()
            await end(after, state)

        assert list(before.submissions) == [kept.submission_id]
        assert not after.submissions
        assert before.record.state is AttachmentState.ATTACHED


@pytest.mark.parametrize("said", ["offered", "unsure", "processed"])
async def test_what_an_heir_tells_of_is_not_taken_by_it(
    tmp_path: Path, said: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before, after = await attached(bridge, 1), await attached(bridge, 2)
        sign = Receipt(before.record.attachment_id, incoming(1).message_id, said, 1.0)
        await before.commit([SaveForeignReceipt(sign)])
        await end(before, AttachmentState.REPLACED)
        await heirs.pass_on(bridge, before)
        await Reports(after, bridge.clock).receipts_taken(after.unsent_receipts())

        await receiving.receive(bridge, after, incoming(1), 1000.0)

        assert states(after) == []
