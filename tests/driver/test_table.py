"""What a person sees of the attachments, and what they were told."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from bridge.core import standing
from bridge.core.effects import SaveAttachment
from bridge.core.events import (
    Detach,
    Event,
    ProcessGone,
    ServerHeld,
    ServerReplaced,
    ServerRevoked,
    TokenRefused,
)
from bridge.core.ids import AttachmentId
from bridge.core.quota import Limits
from bridge.core.records import OfferOutcome
from bridge.driver import (
    natives,
    offering,
    persons,
    receiving,
    restoring,
    stepping,
    table,
)
from bridge.driver.bridge import TOLD_KEPT, Bridge
from bridge.driver.queue import AttachmentQueue
from tests.core.examples import BOB
from tests.driver.desk import OCCASION, Route, advance, incoming, open_bridge
from tests.fakes.ways import ScriptedWay

DAY_S = 24 * 3600.0
INTRODUCED = replace(BOB, setup_at=1.0, guidance_at=1_790_000_000.0)


async def attached(
    bridge: Bridge, name: str = "bob", number: int = 1
) -> AttachmentQueue:
    record = replace(
        INTRODUCED,
        attachment_id=AttachmentId(f"att-{number}"),
        name=name,
        created_at=float(number),
    )
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    return queue


def at(bridge: Bridge) -> float:
    return bridge.clock.wall()


@pytest.mark.parametrize(
    ("event", "state", "word"),
    [
        (ServerReplaced, "replaced", "was replaced by a newer attachment"),
        (ServerRevoked, "revoked", "was revoked"),
    ],
)
async def test_a_lease_that_ended_is_shown_for_a_day(
    tmp_path: Path, event: type[Event], state: str, word: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await stepping.step(bridge, queue, ProcessGone(at(bridge)))
        advance(bridge, 2 * DAY_S)
        await stepping.step(bridge, queue, event(at(bridge)))

        advance(bridge, DAY_S)
        (row,) = table.rows(bridge)
        assert row.state == state
        assert word in row.note
        assert table.rows(bridge, "BOB") == (row,)
        advance(bridge, 1)
        assert table.rows(bridge) == ()


async def test_a_lease_that_ended_is_shown_until_it_is_detached(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await stepping.step(bridge, queue, ServerReplaced(at(bridge)))
        await stepping.step(bridge, queue, Detach(at(bridge)))

        assert table.rows(bridge) == ()


async def test_a_chat_that_took_another_name_is_one_row(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, "bob", 1)
        await attached(bridge, "robert", 2)
        await stepping.step(bridge, before, ServerReplaced(at(bridge)))

        (row,) = table.rows(bridge)
        assert row.name == "robert"


async def test_a_name_that_moved_on_this_computer_is_one_row(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        before = await attached(bridge, number=2)
        await attached(bridge, number=1)
        await stepping.step(bridge, before, ServerReplaced(at(bridge)))

        (row,) = table.rows(bridge)
        assert row.state == "attached"


async def test_the_hourly_sweep_keeps_what_is_still_shown(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await stepping.step(bridge, queue, ServerReplaced(at(bridge)))
        await sweep(bridge)
        assert [row.state for row in table.rows(bridge)] == ["replaced"]

        advance(bridge, DAY_S + 1)
        await sweep(bridge)
        assert list(bridge.roster) == []
        assert await bridge.journal.attachments() == []


async def sweep(bridge: Bridge) -> None:
    """The first thing that tidying does."""
    with trio.move_on_after(restoring.CHECKPOINT_EVERY_S / 2):
        await restoring.keep_tidy(bridge)


async def test_what_the_person_was_told_stays_in_the_status(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await stepping.step(bridge, queue, ServerHeld(at(bridge)))
        await stepping.step(bridge, queue, TokenRefused(at(bridge)))

        held, refused = persons.status(bridge).told
        assert held.startswith("2026-09-21T14:13:20Z bob waits for your confirmation")
        assert "no longer accepts the connection of bob" in refused


async def test_the_status_keeps_the_last_twenty_sentences(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        for number in range(25):
            bridge.tell_person("replaced", f"agent-{number}")

        told = persons.status(bridge).told
        assert len(told) == TOLD_KEPT == 20
        assert "agent-5 " in told[0]
        assert "agent-24 " in told[-1]


async def test_a_full_mailbox_says_so_even_where_nothing_waits(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.limits = Limits(rows=1)
        queue = await attached(bridge)
        for number in (1, 2):
            await receiving.receive(bridge, queue, incoming(number), 1000.0)
        why = "there is no room for more; the rest waits at the server"
        assert persons.status(bridge).waiting == (f"bob: 1 waiting, {why}",)

        route = Route(OfferOutcome.EMITTED)
        await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)

        status = persons.status(bridge)
        assert status.waiting == (f"bob: {why}",)
        assert f"{why}; 1 unacknowledged" in standing.agents_table(status.attachments)
        assert "There was no room" in status.attachments[0].note


async def test_a_server_that_is_not_there_is_said_even_where_nothing_waits(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bob, gone = await attached(bridge), await attached(bridge, "gone", 2)
        await stepping.step(bridge, gone, ProcessGone(at(bridge)))
        bob.stream_trouble = "journal_busy"
        assert persons.status(bridge).warnings == ()

        bob.stream_trouble = gone.stream_trouble = "server_unreachable"
        status = persons.status(bridge)

        assert status.waiting == ("bob: no connection to the server",)
        (warning,) = status.warnings
        assert warning.startswith("No connection to the message server for bob (serv")
        bridge.warnings.append("The embedded server is down.")
        assert persons.status(bridge).warnings == ("The embedded server is down.",)


async def test_of_many_that_are_cut_off_some_are_named(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        for number in range(7):
            queue = await attached(bridge, f"agent-{number}", number)
            queue.stream_trouble = "computer_slept"

        (warning,) = persons.status(bridge).warnings

        assert "for agent-0, agent-1, " in warning
        assert ", agent-4, others (computer_slept)" in warning


async def test_each_attachment_shows_what_nobody_acknowledged(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        for number, outcome in ((1, OfferOutcome.EMITTED), (2, OfferOutcome.UNKNOWN)):
            await receiving.receive(bridge, queue, incoming(number), 1000.0)
            route = Route(outcome)
            await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)
        advance(bridge, 61)

        (row,) = persons.status(bridge).attachments
        assert row.unacknowledged == 2
        assert row.oldest_unacknowledged_s == 61
        assert row.session == BOB.session_id[-8:]


async def test_a_chat_that_is_not_live_says_why(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        assert table.row(bridge, queue).not_live == standing.HOOKS_NOT_LOADED

        queue.hooks_heard = True
        assert table.row(bridge, queue).not_live == ""

        await stepping.step(bridge, queue, ProcessGone(at(bridge)))
        advance(bridge, 301)
        row = table.row(bridge, queue)
        assert (row.route, row.not_live) == ("-", "stopped, offline for 5 min")


async def test_a_chat_that_is_reached_natively_is_live_without_a_hook(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await natives.use(bridge, queue, ScriptedWay())

        row = table.row(bridge, queue)

        assert (row.route, row.not_live) == (ScriptedWay.address, "")


async def test_codex_hooks_that_are_not_trusted_are_said_so(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        queue.record = replace(
            queue.record, provider="codex", folder=str(tmp_path / "shop")
        )

        assert table.row(bridge, queue).not_live == standing.FOLDER_NOT_TRUSTED


@pytest.mark.parametrize(
    ("may_wake", "wants", "provider", "word"),
    [
        (True, ("no_wake",), "claude", "as you chose"),
        (False, (), "claude", "the settings say so"),
        (True, (), "claude", ""),
        (True, ("no_wake",), "script", ""),
    ],
)
async def test_who_is_not_to_be_woken_is_shown_so(
    tmp_path: Path, may_wake: bool, wants: tuple[str, ...], provider: str, word: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.may_wake = may_wake
        queue = await attached(bridge)
        queue.record = replace(queue.record, wants=wants, provider=provider)

        (row,) = table.rows(bridge)
        assert word in row.note
        assert bool(row.note) is bool(word)
