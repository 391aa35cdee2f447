"""The wake test notes each step when it is so, and no step before the one it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.core import texts
from bridge.core.events import ProcessGone
from bridge.core.records import OfferOutcome
from bridge.core.routing import Reached
from bridge.driver import natives, offering, stepping, verbs, wake_test
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import Refused
from tests.driver.desk import OCCASION, Route, advance
from tests.driver.test_attaching import attach, open_house, until
from tests.fakes.ways import ScriptedWay


async def steps(bridge: Bridge, known: int) -> list[str]:
    """The notes of all steps, once there are more than `known`."""
    reply = await wake_test.progress(bridge, known)
    return [step.note for step in reply.steps]


async def settle(bridge: Bridge, queue: AttachmentQueue) -> None:
    """Its setup text is behind it."""
    route = Route(OfferOutcome.EMITTED)
    await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)


async def test_a_message_that_the_agent_acknowledged_came_through_every_step(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, _):
        queue = await attach(bridge, "one", "bob")
        await settle(bridge, queue)

        begun = await wake_test.begin(bridge, "bob")
        assert len(begun.steps) >= 1
        assert not begun.is_over
        assert len(await steps(bridge, 1)) == 2

        route = Route(OfferOutcome.EMITTED)
        await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)
        assert texts.WAKE_TEST in route.texts[0]
        assert (await steps(bridge, 2))[2:] == ["when a turn ends"]

        assert bridge.trial is not None
        await verbs.ack(bridge, queue, bridge.trial.message_id, "processed")
        assert (await steps(bridge, 3))[3:] == ["by its agent's own word", "processed"]
        assert (await wake_test.progress(bridge, 4)).is_over


async def test_a_native_way_is_named_and_what_it_showed_counts_as_seen(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, _):
        queue = await attach(bridge, "one", "bob")
        await settle(bridge, queue)
        way = ScriptedWay(Reached(OfferOutcome.EMITTED, evidence="seen"))
        await natives.use(bridge, queue, way)

        await wake_test.begin(bridge, "bob")
        await way.until(1)
        await until(lambda: queue.guard.confirmed is not None)

        notes = await steps(bridge, 3)
        assert notes[2:] == ["at once, by the chat's own inbox", ""]


async def test_a_step_that_does_not_come_in_a_minute_ends_it(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, _):
        await attach(bridge, "one", "bob")
        await wake_test.begin(bridge, "bob")
        assert len(await steps(bridge, 1)) == 2

        advance(bridge, wake_test.STEP_S + 1)

        reply = await wake_test.progress(bridge, 1)
        assert (len(reply.steps), reply.is_over) == (2, True)


async def test_a_chat_that_is_not_live_is_sent_nothing(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, _):
        queue = await attach(bridge, "one", "bob")
        await stepping.step(bridge, queue, ProcessGone(bridge.clock.wall()))

        with pytest.raises(Refused, match="is not live") as refused:
            await wake_test.begin(bridge, "bob")
        assert refused.value.code == "not_live"
        with pytest.raises(Refused, match="attached as zoe"):
            await wake_test.begin(bridge, "zoe")
        assert bridge.trial is None
