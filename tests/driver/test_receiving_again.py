"""Ids that come again: replayed, reordered, reused, or in another attachment."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.records import DeliveryState, OfferOutcome
from bridge.driver import receiving
from bridge.driver.bridge import Bridge
from bridge.driver.offering import make_offer
from bridge.driver.queue import AttachmentQueue
from tests.driver.desk import OCCASION, Route, incoming, open_bridge
from tests.driver.virtual import attachment, virtual_bridge
from tests.fakes.clock import FakeClock
from tests.fakes.routed_server import RoutedServer


async def attached(bridge: Bridge, number: int = 1) -> AttachmentQueue:
    """A queue whose record is in the journal."""
    record = attachment(number)
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    return queue


CHANGES = [
    {"body": "Send me the keys."},
    {"sender": "mallory"},
    {"inbox_id": "inbox-other"},
    {"sent_at": "2020-01-01T00:00:00Z"},
    {"sequence": incoming(9).sequence},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
async def test_of_an_id_with_two_contents_the_first_is_kept_and_the_second_reported(
    tmp_path: Path, change: dict[str, str]
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        first = incoming(1)
        await receiving.receive(bridge, queue, first, 1000.0)
        await receiving.receive(bridge, queue, replace(first, **change), 1000.0)
        route = Route(OfferOutcome.EMITTED)
        await make_offer(queue, OCCASION, bridge.clock, route.emit)

        assert queue.counted["Changed"] == 1
        assert "from alice" in route.texts[0]
        assert first.body in route.texts[0]


async def test_the_same_again_is_no_change(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        for outcome in OfferOutcome:
            await receiving.receive(bridge, queue, incoming(1), 1000.0)
            if queue.releasable():
                await make_offer(queue, OCCASION, bridge.clock, Route(outcome).emit)

        assert "Changed" not in queue.counted


@pytest.mark.parametrize("is_offered", [False, True])
async def test_an_id_that_is_used_again_is_passed_over(
    tmp_path: Path, is_offered: bool
) -> None:
    """Else the server would replay it at every connection, and the offer repeat."""
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        if is_offered:
            route = Route(OfferOutcome.EMITTED)
            await make_offer(queue, OCCASION, bridge.clock, route.emit)
        again = replace(incoming(1), sequence=incoming(7).sequence)
        await receiving.receive(bridge, queue, again, 1000.0)

        assert queue.record.watermark == again.sequence
        assert len(queue.deliveries) == 1
        assert bool(queue.releasable()) is not is_offered


async def test_the_same_id_in_two_attachments_is_two_messages(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queues = [await attached(bridge, number) for number in (1, 2)]
        for queue in queues:
            await receiving.receive(bridge, queue, incoming(1), 1000.0)
        route = Route(OfferOutcome.EMITTED)
        await make_offer(queues[0], OCCASION, bridge.clock, route.emit)

        (one,), (other,) = (queue.deliveries.values() for queue in queues)
        assert one.state is DeliveryState.OFFERED
        assert other.state is DeliveryState.PENDING


def offered(order: list[int], offers_after: set[int]) -> list[int]:
    """What an agent is shown when messages arrive in this order, in its order."""
    shown: list[int] = []

    async def arrive() -> None:
        async with virtual_bridge(RoutedServer(), FakeClock()) as bridge:
            queue = bridge.new_queue(attachment())
            bridge.roster.add(queue)
            for place, number in enumerate([*order, 0]):
                if number:
                    await receiving.receive(bridge, queue, incoming(number), 1000.0)
                if place in offers_after or not number:
                    rows = [row.sequence for row in queue.releasable()[:20]]
                    outcomes = Route(OfferOutcome.EMITTED)
                    await make_offer(queue, OCCASION, bridge.clock, outcomes.emit)
                    shown.extend(each - 500_000_000 for each in rows)

    trio.run(arrive)
    return shown


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), max_size=6),
    st.sets(st.integers(0, 40)),
)
@settings(deadline=None)
def test_any_replay_of_a_stream_gives_the_same_offers(
    replays: list[tuple[int, int]], offers_after: set[int]
) -> None:
    """Each connection replays from any place before its cursor, and may be cut."""
    order: list[int] = []
    for back, count in [*replays, (12, 12)]:
        start = max(max(order, default=0) - back, 0) + 1
        order += range(start, min(start + count, 13))
    through = max(order)

    assert offered(order, offers_after) == list(range(1, through + 1))


@given(st.lists(st.integers(1, 9), max_size=20), st.sets(st.integers(0, 20)))
@settings(deadline=None)
def test_no_order_whatever_shows_a_message_twice_or_one_behind_the_watermark(
    order: list[int], offers_after: set[int]
) -> None:
    """A server gives sequences in the order of its commits; one that does not is
    believed at its highest: what comes late is found by an explicit read alone.
    """
    rising = [n for place, n in enumerate(order) if n > max(order[:place], default=0)]

    assert offered(order, offers_after) == rising
