"""The clock on the wall is set: nothing is lost, forgotten early or repeated."""

from __future__ import annotations

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from bridge.core.records import DeliveryState, OfferOutcome
from bridge.driver import outgoing, receiving, restoring
from bridge.driver.offering import make_offer
from bridge.driver.queue import AttachmentQueue
from tests.driver.desk import OCCASION, Route, incoming
from tests.driver.virtual import (
    HOUR_S,
    VirtualClock,
    attached,
    attachment,
    beats,
    streaming,
    virtual_bridge,
)
from tests.fakes.routed_server import RoutedServer
from tests.fakes.scripted_server import refused, said
from tests.upstream.following import frame

DAY_S = 24 * HOUR_S
JUMPS = {
    "a day back": -DAY_S,
    "an hour on": HOUR_S,
    "ten years on": 3650 * DAY_S,
    "to 1970": -1_789_000_000.0,
}
GUIDANCE = "Replies are optional"


@pytest.fixture(params=JUMPS)
def jump_s(request: pytest.FixtureRequest) -> float:
    """By how much the clock is set."""
    return JUMPS[request.param]


def offered(queue: AttachmentQueue) -> int:
    return len(queue.in_state(DeliveryState.OFFERED))


async def test_nothing_is_retired_before_seven_days_have_really_passed(
    autojump_clock: MockClock, jump_s: float
) -> None:
    clock = VirtualClock()
    async with virtual_bridge(RoutedServer(), clock) as bridge:
        bridge.nursery.start_soon(restoring.keep_tidy, bridge)
        queue = bridge.new_queue(attachment())
        bridge.roster.add(queue)
        await receiving.receive(bridge, queue, incoming(1), clock.running())
        route = Route(OfferOutcome.EMITTED)
        await make_offer(queue, OCCASION, bridge.clock, route.emit)
        clock.wall_s += jump_s
        await trio.sleep(6.9 * DAY_S)
        assert offered(queue) == 1

        await trio.sleep(0.2 * DAY_S + max(0.0, -jump_s) % (2 * DAY_S))
        assert offered(queue) == (0 if jump_s > -2 * DAY_S else 1)


async def test_guidance_comes_at_most_once_more(
    autojump_clock: MockClock, jump_s: float
) -> None:
    said_in_time = (frame(1), *beats(4), frame(2), *beats(4), frame(3))
    server = RoutedServer(stream=lambda _: streaming(*said_in_time))
    clock = VirtualClock()
    async with virtual_bridge(server, clock) as bridge:
        queue = await attached(bridge)
        queue.record = replace(queue.record, guidance_at=clock.wall())
        route = Route(*[OfferOutcome.EMITTED] * 3)
        for number in range(3):
            await trio.sleep(15 if number == 0 else 40)
            await make_offer(queue, OCCASION, bridge.clock, route.emit)
            clock.wall_s += jump_s if number == 0 else 0

        assert len(route.texts) == 3
        guided = [text for text in route.texts if GUIDANCE in text]
        assert len(guided) <= 1


async def test_what_the_server_put_off_goes_out_when_its_time_has_really_passed(
    autojump_clock: MockClock, jump_s: float
) -> None:
    """Or at once, where the clock was set on: then the server says it again."""
    ids = {"message_id": "msg-1", "inbox_id": "inbox-1", "conversation_id": "c"}
    answers = [
        refused(429, "slow", {"Retry-After": "60"}),
        said({**ids, "sequence": 1}),
    ]
    server = RoutedServer(stream=lambda _: streaming(), send=lambda _: answers.pop(0))
    clock = VirtualClock()
    async with virtual_bridge(server, clock) as bridge:
        queue = await attached(bridge)
        await trio.sleep(1)
        await outgoing.submit(bridge, queue, "x", target="agent:peer")
        clock.wall_s += jump_s
        await trio.sleep(120)

        first, second = server.times("send")
        assert 0 < second - first < 100
