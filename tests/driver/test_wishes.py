"""The person's wishes for mail: kept, replaced, and honoured from then on."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from bridge.core.events import ProcessGone
from bridge.driver import attaching, natives, stepping
from bridge.driver.attaching import Wish
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from tests.driver.test_attaching import open_house, wish
from tests.fakes.ways import ScriptedWay

REMOTE = "unix:///run/codex.sock"


async def attach(bridge: Bridge, wanted: Wish) -> AttachmentQueue:
    done = await attaching.attach(bridge, wanted)
    queue = bridge.roster.get(done.record.attachment_id)
    assert queue is not None
    return queue


async def test_a_wish_holds_until_another_one(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, _):
        plain = wish("one", "bob")
        wanted = [
            replace(plain, wants=("at_prompt",)),
            plain,
            replace(plain, wants=("no_wake",), native_remote=REMOTE),
            replace(plain, wants=()),
        ]

        kept = [(await attach(bridge, each)).record.wants for each in wanted]

        assert len(bridge.roster) == 1
        assert kept == [("at_prompt",), ("at_prompt",), ("no_wake", REMOTE), ()]


async def test_wishes_go_with_a_name_that_moves(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, _):
        first = await attach(bridge, replace(wish("one", "bob"), wants=("no_wake",)))
        await stepping.step(bridge, first, ProcessGone(bridge.clock.wall()))

        moved = await attach(bridge, wish("two", "bob"))

        assert moved is not first
        assert moved.record.wants == ("no_wake",)


async def test_a_way_into_one_program_does_not_go_with_a_name_to_another(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, _):
        wanted = replace(wish("one", "bob"), native_remote=REMOTE, wants=("mid_turn",))
        first = await attach(bridge, wanted)
        await stepping.step(bridge, first, ProcessGone(bridge.clock.wall()))

        moved = await attach(bridge, replace(wish("two", "bob"), provider="claude"))

        assert moved.record.wants == ("mid_turn",)


async def test_wishes_are_there_after_a_restart(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, _):
        await attach(bridge, replace(wish("one", "bob"), wants=("mid_turn",)))

        (kept,) = await bridge.journal.attachments()

        assert kept.wants == ("mid_turn",)


async def test_who_is_to_be_woken_no_more_loses_the_way_at_once(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, _):
        queue = await attach(bridge, wish("one", "bob"))
        await natives.use(bridge, queue, ScriptedWay())

        await attach(bridge, replace(wish("one", "bob"), wants=("no_wake",)))

        assert queue.native.way is None
        assert queue.record.native_route == ""
