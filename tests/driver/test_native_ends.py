"""A native way that is not there, turns mail away, or is cut short: and is said so."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.ids import SessionId
from bridge.core.records import Attachment, DeliveryState, OfferOutcome, ProcessKey
from bridge.core.routing import Reached
from bridge.core.tokens import ChildTokens
from bridge.driver import natives, offering, receiving, restoring, table
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.providers import process
from tests.core.examples import BOB
from tests.driver.desk import OCCASION, incoming, open_bridge
from tests.fakes.ways import ScriptedWay

ONE, TWO, THREE = (incoming(number).message_id for number in (1, 2, 3))
TOKENS = ChildTokens("con-1", "access", "refresh", 2_000_000_000.0)
HELD = Reached(
    OfferOutcome.UNKNOWN, "The chat holds it.", is_over=True, told="native_held"
)


def living(provider: str = "claude") -> Attachment:
    """A chat whose process is this test."""
    facts = process.facts_of(os.getpid())
    assert facts is not None
    key = process.key_of(facts)
    record = replace(BOB, setup_at=1.0, guidance_at=1_790_000_000.0)
    session = SessionId(key.text()) if provider == "script" else BOB.session_id
    return replace(record, provider=provider, process_key=key, session_id=session)


async def attached(bridge: Bridge, record: Attachment) -> AttachmentQueue:
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    queue.hooks_heard = True
    bridge.roster.add(queue)
    return queue


async def bring(bridge: Bridge, queue: AttachmentQueue, *numbers: int) -> None:
    page = [incoming(number) for number in numbers]
    await receiving.receive_page(bridge, queue, page, bridge.clock.running())


def states(queue: AttachmentQueue) -> dict[str, DeliveryState]:
    return {row.message_id: row.state for row in queue.deliveries.values()}


async def test_what_a_chat_holds_is_unsure_and_nothing_more_goes_there(
    tmp_path: Path,
) -> None:
    way = ScriptedWay(HELD)
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, living())
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)
        await way.until(1)
        await trio.testing.wait_all_tasks_blocked(0.01)
        await bring(bridge, queue, 2)
        await natives.look(bridge, queue)
        await trio.testing.wait_all_tasks_blocked(0.01)

        # Not even the word that it is unsure: that would be held as well.
        assert len(way.parcels) == 1
        assert states(queue) == {
            ONE: DeliveryState.AMBIGUOUS,
            TWO: DeliveryState.PENDING,
        }
        assert table.row(bridge, queue).note == "The chat holds it."
        (told,) = bridge.told
        assert "until you approve them" in told


async def test_why_there_is_no_way_is_in_the_row(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, living())
        await natives.look(bridge, queue)
        assert "no registration that can be trusted" in table.row(bridge, queue).note

        bridge.may_wake = False
        await natives.look(bridge, queue)
        assert "the settings say so" in table.row(bridge, queue).note

        bridge.may_wake = True
        await natives.use(bridge, queue, ScriptedWay())
        assert table.row(bridge, queue).note == ""


async def test_a_process_that_has_ended_has_no_way(tmp_path: Path) -> None:
    key = living().process_key
    gone = ProcessKey(key.boot_id, key.pid, key.start + 1)
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, replace(living(), process_key=gone))
        await natives.look(bridge, queue)

        assert "its process has ended" in table.row(bridge, queue).note


async def test_what_was_saved_and_perhaps_not_written_is_named_once(
    tmp_path: Path,
) -> None:
    native = replace(OCCASION, route="claude_session")
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, living("script"))
        await bring(bridge, queue, 1)
        with trio.CancelScope() as scope:

            async def die(offer_id: str, text: str) -> OfferOutcome:
                scope.cancel()
                raise RuntimeError("the daemon dies here")

            with contextlib.suppress(RuntimeError):
                await offering.make_offer(queue, native, bridge.clock, die)

    way = ScriptedWay()
    async with open_bridge(tmp_path) as bridge:
        await bridge.leases.save(BOB.attachment_id, TOKENS)
        await restoring.restore(bridge)
        (queue,) = bridge.roster
        await natives.use(bridge, queue, way)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert way.parcels == [], "it may have started a turn already"
        await bring(bridge, queue, 2)
        await way.until(1)
        await queue.wait_for_offer()
        await bring(bridge, queue, 3)
        await way.until(2)
        await queue.wait_for_offer()

        named, later = way.parcels
        assert [part.key for part in named.parts] == ["head", TWO, "foot"]
        assert f"{ONE} may not have reached you" in named.text
        assert [part.key for part in later.parts] == ["head", THREE, "foot"]
        assert ONE not in later.text
        assert states(queue)[ONE] is DeliveryState.AMBIGUOUS
