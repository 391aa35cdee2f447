"""A native way: one attempt for each message, and nobody woken against their wish."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core import loopguard
from bridge.core.effects import SaveAttachment
from bridge.core.events import Admitted, ServerReplaced
from bridge.core.naming import SILENT_AFTER_S
from bridge.core.records import Attachment, DeliveryState, OfferOutcome, Want
from bridge.core.routing import Parcel, Reached
from bridge.driver import natives, offering, receiving, stepping
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from tests.core.examples import BOB
from tests.driver.desk import OCCASION, Route, advance, incoming, open_bridge
from tests.fakes.ways import ScriptedWay

INTRODUCED = replace(BOB, setup_at=1.0, guidance_at=1_790_000_000.0)
ONE, TWO = incoming(1).message_id, incoming(2).message_id
EMITTED, NOT_EMITTED, UNKNOWN = (
    OfferOutcome.EMITTED,
    OfferOutcome.NOT_EMITTED,
    OfferOutcome.UNKNOWN,
)


async def attached(bridge: Bridge, record: Attachment = INTRODUCED) -> AttachmentQueue:
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    return queue


async def bring(bridge: Bridge, queue: AttachmentQueue, *numbers: int) -> None:
    page = [incoming(number) for number in numbers]
    await receiving.receive_page(bridge, queue, page, bridge.clock.running())


def states(queue: AttachmentQueue) -> dict[str, DeliveryState]:
    return {row.message_id: row.state for row in queue.deliveries.values()}


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked(0.01)


async def test_a_message_goes_the_native_way_at_once_and_whole(tmp_path: Path) -> None:
    way = ScriptedWay()
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(1)
        await queue.wait_for_offer()

        (parcel,) = way.parcels
        assert states(queue) == {ONE: DeliveryState.OFFERED}
        assert parcel.session_id == queue.record.session_id
        assert "\n\n".join(part.text for part in parcel.parts) == parcel.text
        assert [part.key for part in parcel.parts] == ["head", ONE, "foot"]
        assert parcel.nonce in parcel.text


async def test_setup_goes_at_once_without_a_message(tmp_path: Path) -> None:
    way = ScriptedWay()
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, BOB)
        await natives.use(bridge, queue, way)
        await way.until(1)
        await queue.wait_for_offer()

        assert queue.record.setup_at is not None
        assert "purpose" in way.parcels[0].text


async def test_what_comes_during_an_offer_goes_next(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)

        class Slow(ScriptedWay):
            async def offer(self, parcel: object) -> Reached:
                if not self.parcels:
                    await bring(bridge, queue, 2)
                return await super().offer(parcel)  # type: ignore[arg-type]

        way = Slow()
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(2)
        await queue.wait_for_offer()

        assert states(queue) == {ONE: DeliveryState.OFFERED, TWO: DeliveryState.OFFERED}


async def test_what_the_way_refused_is_left_to_the_hook_and_the_person_told_once(
    tmp_path: Path,
) -> None:
    way, route = ScriptedWay(NOT_EMITTED), Route(EMITTED)
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(1)
        await settled()
        await bring(bridge, queue, 2)
        await natives.look(bridge, queue)
        await settled()

        assert len(way.parcels) == 1
        assert states(queue) == {ONE: DeliveryState.PENDING, TWO: DeliveryState.PENDING}
        assert queue.record.native_route == ""
        assert len(bridge.told) == 1

        await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)
        assert states(queue) == {ONE: DeliveryState.OFFERED, TWO: DeliveryState.OFFERED}


async def test_what_a_chat_at_work_did_not_take_comes_by_hook_and_later_mail_natively(
    tmp_path: Path,
) -> None:
    busy = Reached(NOT_EMITTED, "it is at work", is_over=True, is_busy=True)
    way, again, route = ScriptedWay(busy), ScriptedWay(), Route(EMITTED)
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(1)
        await settled()
        assert queue.native.way is None
        assert not bridge.told

        await natives.use(bridge, queue, again)
        await bring(bridge, queue, 2)
        await again.until(1)
        await queue.wait_for_offer()

        assert states(queue) == {ONE: DeliveryState.PENDING, TWO: DeliveryState.OFFERED}
        assert [part.key for part in again.parcels[0].parts] == ["head", TWO, "foot"]
        await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)
        assert states(queue) == {ONE: DeliveryState.OFFERED, TWO: DeliveryState.OFFERED}


async def test_what_may_have_gone_is_unsure_and_never_goes_again(
    tmp_path: Path,
) -> None:
    way = ScriptedWay(UNKNOWN)
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(1)
        await queue.wait_for_offer()
        await settled()

        assert states(queue) == {ONE: DeliveryState.AMBIGUOUS}
        assert len(way.parcels) == 1
        assert len(bridge.told) == 1


@pytest.mark.parametrize("outcome", [EMITTED, UNKNOWN])
async def test_an_unsure_message_starts_no_second_turn(
    tmp_path: Path, outcome: OfferOutcome
) -> None:
    way, route = ScriptedWay(outcome), Route(EMITTED)
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(1)
        await queue.wait_for_offer()
        advance(bridge, SILENT_AFTER_S + 1)
        queue.native.stir()
        await settled()
        assert queue.to_be_named(bridge.clock.wall())
        assert len(way.parcels) == 1

        await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)
        assert f"{ONE} may not have reached you" in route.texts[0]


async def test_a_queues_yes_admits_what_it_took_and_nothing_else(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)

        class Quick(ScriptedWay):
            """Its chat shows the text before the queue's yes is heard."""

            async def offer(self, parcel: Parcel) -> Reached:
                await bring(bridge, queue, 2)
                queue.guard = loopguard.seen(queue.guard)
                return await super().offer(parcel)

        way = Quick(Reached(EMITTED, evidence="native_queue", is_over=True))
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(1)
        await settled()

        assert states(queue) == {
            ONE: DeliveryState.ADMITTED,
            TWO: DeliveryState.PENDING,
        }


async def test_what_a_way_takes_no_more_of_is_not_asked_again_and_again(
    tmp_path: Path,
) -> None:
    busy = Reached(NOT_EMITTED, "it is at work", is_busy=True)
    way = ScriptedWay(*[busy] * 9)
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, BOB)
        await natives.use(bridge, queue, way)
        await way.until(1)
        await settled()

        assert len(way.parcels) == 1
        assert queue.record.setup_at is None


async def test_a_native_queues_own_yes_is_an_admission(tmp_path: Path) -> None:
    way = ScriptedWay(Reached(EMITTED, evidence="native_queue"))
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(1)
        await settled()

        assert states(queue) == {ONE: DeliveryState.ADMITTED}
        kinds = {receipt.delivery: receipt for receipt in queue.unsent_receipts()}
        assert kinds["admitted"].evidence == "native_queue"


async def test_a_way_that_is_gone_is_dropped_and_nothing_was_tried(
    tmp_path: Path,
) -> None:
    way = ScriptedWay()
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, way)
        assert queue.record.native_route == way.address
        way.is_there = False
        await bring(bridge, queue, 1)
        await settled()

        assert way.parcels == []
        assert states(queue) == {ONE: DeliveryState.PENDING}
        assert (queue.native.way, queue.record.native_route) == (None, "")

        again = ScriptedWay()
        await natives.use(bridge, queue, again)
        await again.until(1)


async def test_of_two_ways_found_at_once_one_is_used(tmp_path: Path) -> None:
    first, second = ScriptedWay(), ScriptedWay()
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, first)
        await natives.use(bridge, queue, second)
        await bring(bridge, queue, 1)
        await first.until(1)
        await settled()

        assert second.parcels == []


async def test_the_end_of_a_session_ends_its_way(tmp_path: Path) -> None:
    way = ScriptedWay()
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, way)
        await stepping.step(bridge, queue, ServerReplaced(bridge.clock.wall()))
        await settled()

        assert (queue.native.way, queue.record.native_route) == (None, "")


@pytest.mark.parametrize("wish", ["setting", "want"])
async def test_who_wants_no_waking_has_no_way(tmp_path: Path, wish: str) -> None:
    wants = (Want.NO_WAKE.value,) if wish == "want" else ()
    async with open_bridge(tmp_path) as bridge:
        bridge.may_wake = wish != "setting"
        queue = await attached(bridge, replace(INTRODUCED, wants=wants))

        assert not bridge.lets_wake(queue)
        await natives.look(bridge, queue)
        assert queue.native.way is None


async def test_a_message_acknowledged_before_it_goes_is_not_handed_over(
    tmp_path: Path,
) -> None:
    way = ScriptedWay()
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await bring(bridge, queue, 1)
        async with queue.turn:
            await queue.take([(ONE, Admitted(bridge.clock.wall()))])
        await natives.use(bridge, queue, way)
        await settled()

        assert way.parcels == []
