"""A watch ends with mail, with its chat, or in time; and tells no text."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.events import Detach
from bridge.core.records import Want
from bridge.driver import receiving, stepping, watching
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import Refused
from bridge.local.replies import WatchReply
from tests.driver.desk import incoming, open_bridge
from tests.driver.test_hooks import attached


async def watch(bridge: Bridge, queue: AttachmentQueue, after: int = 0) -> WatchReply:
    session_id = queue.record.session_id
    with trio.fail_after(5):
        return await watching.watch(bridge, queue, session_id, after)


async def test_mail_that_waits_is_told_at_once_and_without_its_text(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1, "A secret."), 1000.0)
        await receiving.receive(bridge, queue, incoming(2, "Another."), 1000.0)

        answer = await watch(bridge, queue)

        assert answer.is_live
        assert [each.sequence for each in answer.waiting] == sorted(
            row.sequence for row in queue.deliveries.values()
        )
        assert {each.sender for each in answer.waiting} == {incoming(1).sender}
        assert b"secret" not in msgspec.json.encode(answer)


async def test_what_comes_during_a_watch_ends_it(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        first = await watch(bridge, queue)
        after = first.waiting[-1].sequence
        answers: list[WatchReply] = []

        async def go_on() -> None:
            answers.append(await watch(bridge, queue, after))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert answers == []
            await receiving.receive(bridge, queue, incoming(2), 1000.0)

        (answer,) = answers
        assert [each.sequence for each in answer.waiting] == [incoming(2).sequence]


async def test_a_chat_that_ends_ends_the_watch(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        answers: list[WatchReply] = []

        async def go_on() -> None:
            answers.append(await watch(bridge, queue))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on)
            await trio.testing.wait_all_tasks_blocked(0.05)
            await stepping.step(bridge, queue, Detach(1000.0))

        assert answers == [WatchReply("script", is_live=False)]


async def test_another_session_than_the_callers_own_is_refused(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)

        with pytest.raises(Refused, match="another chat") as refused:
            await watching.watch(bridge, queue, "another", 0)
        assert refused.value.code == "other_session"


@pytest.mark.parametrize("wish", ["setting", "want"])
async def test_who_wants_no_waking_is_not_woken_by_a_monitor(
    tmp_path: Path, wish: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        if wish == "want":
            queue.record = replace(queue.record, wants=(Want.NO_WAKE.value,))
        bridge.may_wake = wish != "setting"

        with pytest.raises(Refused) as refused:
            await watch(bridge, queue)

        assert refused.value.code == "no_wake"
