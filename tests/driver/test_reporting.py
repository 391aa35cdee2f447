"""What one attachment has for the server, and what the server knows of it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.ids import MessageId
from bridge.core.records import DeliveryState, OfferOutcome, Receipt, ReceiptState
from bridge.driver import offering, receiving, restoring, verbs
from bridge.driver.bridge import Bridge
from bridge.driver.queue import BY_HAND_KEPT, AttachmentQueue
from bridge.driver.reporting import Reports
from tests.core.examples import BOB
from tests.driver.desk import OCCASION, Route, incoming, open_bridge

INTRODUCED = replace(BOB, setup_at=1.0, guidance_at=1_790_000_000.0)


async def attached(bridge: Bridge) -> AttachmentQueue:
    await bridge.commit([SaveAttachment(INTRODUCED)])
    queue = bridge.new_queue(INTRODUCED)
    bridge.roster.add(queue)
    return queue


async def test_what_the_server_knows_of_progress_is_known_after_a_start(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        route = Route(OfferOutcome.EMITTED)
        await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)
        reports = Reports(queue, bridge.clock)
        through = reports.due_progress()
        assert through == incoming(1).sequence
        await reports.progress_taken(through)
        await reports.progress_taken(through - 1)

    async with open_bridge(tmp_path) as bridge:
        await restoring.restore(bridge)
        (queue,) = bridge.roster
        assert queue.record.offered_through == queue.reported_through == through


async def test_an_id_acknowledged_by_hand_is_remembered_until_it_has_come(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        message = incoming(1)
        await verbs.ack(bridge, queue, message.message_id, "admitted")
        assert message.message_id in queue.acknowledged_by_hand

        await receiving.receive(bridge, queue, message, 1000.0)
        await receiving.receive(bridge, queue, message, 1000.0)

        assert not queue.acknowledged_by_hand
        assert queue.in_state(DeliveryState.PENDING) == []


async def test_ids_acknowledged_by_hand_are_forgotten_once_the_server_has_them(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        ids = [MessageId(f"msg-{number}") for number in range(BY_HAND_KEPT + 100)]
        queue.acknowledged_by_hand = dict.fromkeys(ids[:BY_HAND_KEPT])
        unsent = [
            Receipt(queue.record.attachment_id, id_, "admitted", 1.0)
            for id_ in ids[BY_HAND_KEPT:]
        ]
        queue.receipts = {(row.message_id, row.delivery): row for row in unsent[:50]}
        for id_ in ids[BY_HAND_KEPT : BY_HAND_KEPT + 50]:
            queue.acknowledged_by_hand[id_] = None
        await verbs.ack(bridge, queue, ids[-1], "processed")
        assert len(queue.acknowledged_by_hand) == BY_HAND_KEPT + 51

        await Reports(queue, bridge.clock).receipts_taken(
            [*queue.receipts.values(), replace(unsent[-1], state=ReceiptState.UNSENT)]
        )
        await verbs.ack(bridge, queue, ids[-2], "admitted")

        assert len(queue.acknowledged_by_hand) == BY_HAND_KEPT + 1
        assert ids[-1] in queue.acknowledged_by_hand
        assert ids[0] not in queue.acknowledged_by_hand
