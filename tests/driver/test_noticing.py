"""The person learns of mail that nothing brings: once, and never of what it says."""

from __future__ import annotations

from pathlib import Path

import trio.testing
from msgspec.structs import replace

from bridge.core.events import Admitted
from bridge.core.ids import MessageId
from bridge.driver import natives, receiving
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.routes.notification import Desktop
from tests.driver.desk import incoming, open_bridge
from tests.driver.test_early_offers import PROMPT, STOP, say
from tests.driver.test_hooks import NOTHING, Codex, codex, heard, printed
from tests.fakes.ways import ScriptedWay

__all__ = ["codex"]

BEGINS = {"hook_event_name": "SessionStart"}


class Screen(Desktop):
    """A desktop that keeps what it is to show."""

    def __init__(self, why: str = "") -> None:
        super().__init__({}, ())
        self.shown: list[str] = []
        self._why = why

    async def show(self, agent: str, link: str = "") -> str:
        self.shown.append(f"{agent} {link}")
        return self._why


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked(0.05)


async def bring(bridge: Bridge, queue: AttachmentQueue, *numbers: int) -> None:
    page = [incoming(number) for number in numbers]
    await receiving.receive_page(bridge, queue, page, bridge.clock.running())
    await settled()


async def idle(bridge: Bridge, codex: Codex, turn: str = "turn-1") -> None:
    """A turn ends and brings nothing."""
    stop = await say(bridge, codex, STOP, turn_id=turn)
    assert await heard(stop, NOTHING) == NOTHING
    await settled()


def screen_of(bridge: Bridge, why: str = "") -> Screen:
    bridge.desktop = screen = Screen(why)
    return screen


async def test_one_notification_until_the_mail_is_gone(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue, screen = await codex.attached(bridge), screen_of(bridge)
        await idle(bridge, codex)
        await bring(bridge, queue, 1)
        assert screen.shown == [f"bob codex://threads/{queue.record.session_id}"]
        await bring(bridge, queue, 2)
        await bring(bridge, queue, 3)
        assert len(screen.shown) == 1

        async with queue.turn:
            read = [(MessageId(incoming(n).message_id), Admitted(1.0)) for n in (1, 2)]
            await queue.take(read)
        await bring(bridge, queue, 4)
        assert len(screen.shown) == 2


async def test_a_busy_chat_is_not_told_of(tmp_path: Path, codex: Codex) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue, screen = await codex.attached(bridge), screen_of(bridge)
        await bring(bridge, queue, 1)
        assert screen.shown == [], "nothing is known of its turns yet"

        await say(bridge, codex, PROMPT)
        await bring(bridge, queue, 2)
        assert screen.shown == []

        stop = await say(bridge, codex, STOP)
        await heard(stop, b"Ready for review.")
        await printed(queue, stop)
        await bring(bridge, queue, 3)
        assert screen.shown == [], "the turn goes on with what was printed"


async def test_a_chat_that_is_shortened_at_work_is_not_told_of(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue, screen = await codex.attached(bridge), screen_of(bridge)
        await say(bridge, codex, PROMPT)
        await say(bridge, codex, BEGINS, source="compact")
        await bring(bridge, queue, 1)
        assert screen.shown == []

        await say(bridge, codex, BEGINS, source="resume")
        await settled()
        assert len(screen.shown) == 1


async def test_a_program_that_answers_slowly_is_asked_by_one_hook_at_a_time(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await codex.attached(bridge)
        async with queue.native.looking:
            await say(bridge, codex, PROMPT)
            await settled()

            assert queue.native.looking.statistics().tasks_waiting == 0


async def test_what_a_turns_end_may_not_bring_is_told_of(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue, screen = await codex.attached(bridge), screen_of(bridge)
        queue.guard = replace(queue.guard, continuations=99)
        await bring(bridge, queue, 1)

        stop = await say(bridge, codex, STOP | {"stop_hook_active": True})
        assert await heard(stop, NOTHING) == NOTHING
        await settled()

        assert len(screen.shown) == 1


async def test_a_chat_with_a_native_way_is_not_told_of(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue, screen = await codex.attached(bridge), screen_of(bridge)
        await idle(bridge, codex)
        way = ScriptedWay()
        way.route = "codex_app_server"
        await natives.use(bridge, queue, way)
        await bring(bridge, queue, 1)

        assert len(way.parcels) == 1
        assert screen.shown == []


async def test_a_desktop_that_fails_is_said_once_and_harms_nothing(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue, screen = await codex.attached(bridge), screen_of(bridge, "no program")
        await idle(bridge, codex)
        await bring(bridge, queue, 1)
        async with queue.turn:
            await queue.take([(MessageId(incoming(1).message_id), Admitted(1.0))])
        await bring(bridge, queue, 2)

        assert len(screen.shown) == 2
        assert len(bridge.told) == 1
        stop = await say(bridge, codex, STOP, turn_id="turn-2")
        assert b"Ready for review." in await heard(stop, b"Ready for review.")
        await printed(queue, stop)


async def test_who_wants_no_notification_gets_none(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await codex.attached(bridge)
        await idle(bridge, codex)
        await bring(bridge, queue, 1)

        assert bridge.desktop is None
        assert list(bridge.told) == []
