"""One message from the stream: into the journal once, or held at the server."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from bridge.core.effects import SaveAttachment, SaveForeignReceipt
from bridge.core.events import Admitted, Processed, Retracted
from bridge.core.ids import AttachmentId
from bridge.core.quota import Limits
from bridge.core.records import DeliveryState, OfferOutcome, Receipt
from bridge.driver import receiving, verbs
from bridge.driver.bridge import Bridge
from bridge.driver.offering import make_offer
from bridge.driver.queue import AttachmentQueue
from tests.core.examples import BOB
from tests.driver.desk import OCCASION, Route, advance, incoming, open_bridge

INTRODUCED = replace(BOB, setup_at=1.0, guidance_at=1_790_000_000.0)


async def attached(bridge: Bridge, number: int = 1) -> AttachmentQueue:
    """A queue of bob's, with an attachment id of its own."""
    record = replace(INTRODUCED, attachment_id=AttachmentId(f"att-{number}"))
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    return queue


def is_full(queue: AttachmentQueue) -> bool:
    """Whether it is so now; the type checker takes a property for a constant."""
    return queue.is_full


async def test_a_message_and_its_watermark_are_kept_together(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1.0)

        (row,) = await bridge.journal.deliveries(queue.record.attachment_id)
        (kept,) = await bridge.journal.attachments()
        assert row.state is DeliveryState.PENDING
        assert kept.watermark == row.sequence == queue.record.watermark


async def test_a_replayed_message_is_taken_once(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        for _ in range(3):
            await receiving.receive(bridge, queue, incoming(1), 1.0)

        assert len(queue.deliveries) == 1
        assert queue.counted == {"Count": 2}


async def test_what_an_earlier_session_may_have_seen_is_not_taken_again(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, 1)
        await receiving.receive(bridge, before, incoming(1), 1000.0)
        route = Route(OfferOutcome.UNKNOWN)
        await make_offer(before, OCCASION, bridge.clock, route.emit)
        after = await attached(bridge, 2)
        await receiving.receive(bridge, after, incoming(1), 1.0)

        assert after.deliveries == {}
        assert after.record.watermark == incoming(1).sequence


async def test_what_waited_for_an_earlier_session_is_taken_by_the_next(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, 1)
        await receiving.receive(bridge, before, incoming(1), 1.0)
        after = await attached(bridge, 2)
        await receiving.receive(bridge, after, incoming(1), 1.0)

        (row,) = after.deliveries.values()
        assert row.state is DeliveryState.PENDING


async def test_an_id_acknowledged_by_hand_is_not_offered_when_it_arrives(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        arriving = incoming(1)
        receipt = Receipt(
            queue.record.attachment_id, arriving.message_id, "processed", 1.0
        )
        await queue.commit([SaveForeignReceipt(receipt)])
        await receiving.receive(bridge, queue, arriving, 1.0)

        assert queue.deliveries == {}


async def test_without_room_the_message_stays_at_the_server(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(rows=1)
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1.0)
        await receiving.receive(bridge, queue, incoming(2), 1.0)

        assert queue.is_full
        assert queue.record.watermark == incoming(1).sequence
        assert len(queue.deliveries) == 1


async def test_there_is_room_again_when_what_filled_it_is_gone(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(rows=1)
        queue = await attached(bridge)
        queue.lacks_bytes = 1
        await receiving.look_for_room(bridge, queue)

        assert not queue.is_full


async def test_what_was_dealt_with_makes_room_for_what_the_server_keeps(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(rows=10)
        queue = await attached(bridge)
        for number in range(1, 12):
            await receiving.receive(bridge, queue, incoming(number), 1.0)
        assert is_full(queue)
        at = bridge.clock.wall()
        rows = queue.in_state(DeliveryState.PENDING)
        async with queue.turn:
            await queue.take([(row.message_id, Processed(at)) for row in rows[:2]])
        await receiving.look_for_room(bridge, queue)
        assert is_full(queue)
        assert len(queue.deliveries) == 8

        async with queue.turn:
            await queue.take([(row.message_id, Processed(at)) for row in rows[2:4]])
        await receiving.look_for_room(bridge, queue)

        assert not is_full(queue)
        assert len(queue.deliveries) == 7
        assert len(queue.in_state(DeliveryState.PENDING)) == 6


async def test_an_agent_that_never_says_a_word_does_not_stay_at_the_wall(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(rows=5)
        queue = await attached(bridge)
        for number in range(1, 7):
            await receiving.receive(bridge, queue, incoming(number), 1000.0)
        route = Route(OfferOutcome.EMITTED, OfferOutcome.EMITTED)
        await make_offer(queue, OCCASION, bridge.clock, route.emit)
        await receiving.look_for_room(bridge, queue)
        assert is_full(queue)

        advance(bridge, 600)
        await make_offer(queue, OCCASION, bridge.clock, route.emit)
        await receiving.look_for_room(bridge, queue)

        assert "may not have reached you" in route.texts[1]
        assert not is_full(queue)


async def test_what_was_taken_back_or_only_admitted_does_not_keep_the_wall(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(rows=6)
        queue = await attached(bridge)
        for number in range(1, 8):
            await receiving.receive(bridge, queue, incoming(number), 1.0)
        at = bridge.clock.wall()
        ids = [incoming(number).message_id for number in range(1, 7)]
        async with queue.turn:
            await queue.take([(id_, Retracted(at, "revoked")) for id_ in ids[:1]])
            await queue.take([(id_, Admitted(at)) for id_ in ids[1:]])

        await receiving.look_for_room(bridge, queue)

        assert not is_full(queue)
        assert len(queue.deliveries) == 4
        assert ids[0] not in queue.deliveries


async def test_a_lack_of_bytes_forgets_no_row(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(total_bytes=100, share_bytes=50)
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1, "x" * 10), 1.0)
        async with queue.turn:
            done = Processed(bridge.clock.wall())
            await queue.take([(incoming(1).message_id, done)])
        await receiving.receive(bridge, queue, incoming(2, "x" * 60), 1.0)

        assert queue.is_full
        assert incoming(1).message_id in queue.deliveries


async def test_the_person_is_told_once_of_the_wall_and_once_of_its_end(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(rows=1)
        queue = await attached(bridge)
        for number in (1, 2, 3):
            await receiving.receive(bridge, queue, incoming(number), 1.0)
        async with queue.turn:
            done = Processed(bridge.clock.wall())
            await queue.take([(incoming(1).message_id, done)])
        await receiving.look_for_room(bridge, queue)

        wall, end = bridge.told
        assert "There was no room for another message of bob" in wall
        assert "There is room again for the messages of bob" in end


async def test_each_attachment_counts_the_bytes_of_all(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(total_bytes=100, share_bytes=20)
        one, other = await attached(bridge, 1), await attached(bridge, 2)
        await receiving.receive(bridge, one, incoming(1, "x" * 60), 1.0)
        await receiving.receive(bridge, other, incoming(2, "x" * 21), 1.0)
        assert is_full(other)
        async with one.turn:
            done = Processed(bridge.clock.wall())
            await one.take([(incoming(1).message_id, done)])
        await receiving.look_for_room(bridge, other)
        assert not is_full(other)

        bridge.roster.remove(one)
        own = other.record.attachment_id
        assert bridge.roster.holdings.allowance(own, bridge.limits) == 80


async def test_a_stream_is_not_reopened_for_a_message_without_room(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(total_bytes=100, share_bytes=50)
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1, "x" * 60), 1.0)
        await receiving.look_for_room(bridge, queue)

        assert queue.is_full


async def test_an_unreadable_event_moves_the_watermark_past_it(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.pass_over(queue, 500_000_007)
        await receiving.pass_over(queue, 500_000_003)

        assert queue.record.watermark == 500_000_007


async def test_what_the_agent_says_has_room_at_the_wall(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(rows=1)
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1.0)
        await receiving.receive(bridge, queue, incoming(2), 1.0)
        bridge.limits = Limits(rows=0, total_bytes=0, share_bytes=0)

        for message_id in (incoming(1).message_id, incoming(2).message_id, "msg-0"):
            for delivery in ("admitted", "processed"):
                answer = await verbs.ack(bridge, queue, message_id, delivery)
                assert answer["delivery"] == delivery
        await receiving.receive(bridge, queue, incoming(2), 1.0)

        assert is_full(queue)
        kept = await bridge.journal.unsent_receipts()
        assert len(kept) == 6
