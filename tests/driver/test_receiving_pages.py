"""Messages that came together: one commit, and each as if it had come alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from bridge.core.effects import Save, SaveMessage
from bridge.core.ids import MessageId
from bridge.core.quota import Limits
from bridge.core.records import DeliveryState, Message, OfferOutcome
from bridge.driver import receiving
from bridge.driver.bridge import Bridge
from bridge.driver.offering import make_offer
from bridge.driver.together import PAGE, Together
from bridge.store.journal import Journal
from bridge.upstream.stream_events import Alive, Arrived, StreamEvent
from tests.driver.desk import OCCASION, Route, incoming, open_bridge
from tests.driver.test_receiving import attached, is_full


def counting(bridge: Bridge) -> list[list[Save]]:
    """Every commit of the journal from here on."""
    commits: list[list[Save]] = []

    class Counted(Journal):
        async def commit(self, saves: object) -> None:
            commits.append(list(saves))  # type: ignore[call-overload]
            await super().commit(saves)  # type: ignore[arg-type]

    bridge.journal.__class__ = Counted
    return commits


def page(*numbers: int) -> list[Message]:
    """Messages in these places."""
    return [incoming(number) for number in numbers]


async def test_messages_that_came_together_are_one_commit(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        commits = counting(bridge)
        await receiving.receive_page(bridge, queue, page(1, 2, 3), 1.0)

        (saves,) = commits
        assert len([save for save in saves if isinstance(save, SaveMessage)]) == 3
        rows = await bridge.journal.deliveries(queue.record.attachment_id)
        assert [row.state for row in rows] == [DeliveryState.PENDING] * 3
        (kept,) = await bridge.journal.attachments()
        assert kept.watermark == rows[-1].sequence == queue.record.watermark


async def test_of_a_page_without_room_for_all_the_first_ones_are_kept(
    tmp_path: Path,
) -> None:
    limits = Limits(rows=2)
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = limits
        queue = await attached(bridge)
        await receiving.receive_page(bridge, queue, page(1, 2, 3, 4), 1.0)

        assert len(queue.deliveries) == 2
        assert is_full(queue)
        assert queue.record.watermark == incoming(2).sequence


async def test_bytes_are_counted_within_a_page(tmp_path: Path) -> None:
    limits = Limits(total_bytes=100, share_bytes=0)
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = limits
        queue = await attached(bridge)
        large = [incoming(number, "x" * 40) for number in (1, 2, 3)]
        await receiving.receive_page(bridge, queue, large, 1.0)

        assert len(queue.deliveries) == 2
        assert queue.lacks_bytes == 40


@pytest.mark.parametrize("seen", [1, 2, 3])
async def test_a_message_passed_over_in_a_page_does_not_lower_the_watermark(
    tmp_path: Path, seen: int
) -> None:
    async with open_bridge(tmp_path) as bridge:
        before, after = await attached(bridge, 1), await attached(bridge, 2)
        await receiving.receive(bridge, before, incoming(seen), 1000.0)
        route = Route(OfferOutcome.EMITTED)
        await make_offer(before, OCCASION, bridge.clock, route.emit)

        await receiving.receive_page(bridge, after, page(1, 2, 3), 1000.0)

        assert after.record.watermark == incoming(3).sequence
        kept = {row.sequence for row in after.deliveries.values()}
        others = {1, 2, 3} - {seen}
        assert kept == {incoming(number).sequence for number in others}
        assert after.record in await bridge.journal.attachments()


async def test_a_replayed_page_is_taken_once(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        for last in (2, 3, 3):
            await receiving.receive_page(bridge, queue, page(*range(1, last + 1)), 1.0)

        assert len(queue.deliveries) == 3
        assert queue.record.watermark == incoming(3).sequence


async def test_a_failed_commit_keeps_nothing_of_a_page(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)

        class Full(Journal):
            async def commit(self, saves: object) -> None:
                raise OSError("no room")

        kind = type(bridge.journal)
        bridge.journal.__class__ = Full
        with pytest.raises(OSError, match="no room"):
            await receiving.receive_page(bridge, queue, page(1, 2), 1.0)
        bridge.journal.__class__ = kind

        assert not queue.deliveries
        assert not queue.releasable()
        assert not await bridge.journal.deliveries(queue.record.attachment_id)


# ---- which events come together ------------------------------------------------------

_EVENTS = some.lists(
    some.one_of(
        some.integers(1, 9).map(lambda number: Arrived(0.0, incoming(number))),
        some.builds(
            lambda number, place: Arrived(
                0.0, replace(incoming(place), message_id=MessageId(f"msg-{number}"))
            ),
            some.integers(1, 4),
            some.integers(1, 9),
        ),
        some.integers(1, 9).map(lambda number: Alive(0.0, number)),
    ),
    max_size=60,
)


def together(events: list[StreamEvent]) -> list[list[StreamEvent]]:
    """The pages of events that are all there already."""

    async def collect() -> list[list[StreamEvent]]:
        sending, receiving_ = trio.open_memory_channel[StreamEvent](len(events))
        async with sending:
            for event in events:
                sending.send_nowait(event)
        async with receiving_:
            return [page async for page in Together(receiving_)]

    return trio.run(collect)


@given(_EVENTS)
def test_pages_keep_the_order_and_leave_nothing_out(events: list[StreamEvent]) -> None:
    pages = together(events)

    assert [event for page in pages for event in page] == events
    for each in pages:
        assert 1 <= len(each) <= PAGE
        if len(each) > 1:
            messages = [event.message for event in each if isinstance(event, Arrived)]
            assert len(messages) == len(each)
            places = [message.sequence for message in messages]
            assert places == sorted(set(places))
            assert len({message.message_id for message in messages}) == len(each)


async def test_a_message_alone_waits_for_no_other() -> None:
    sending, receiving_ = trio.open_memory_channel[StreamEvent](PAGE)
    pages = Together(receiving_)
    sending.send_nowait(Arrived(0.0, incoming(1)))
    with trio.fail_after(5):
        assert len(await anext(pages)) == 1
    await sending.aclose()
    await receiving_.aclose()
