"""A chat in a pane is told to read its mailbox: once, and only where it was wished."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.records import DeliveryState, Want
from bridge.core.remotes import pane_want
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.providers import process
from bridge.routes.tmux import LINE
from tests.core.examples import BOB
from tests.driver.desk import incoming, open_bridge
from tests.driver.test_noticing import bring, screen_of
from tests.real_clients.rig.waiting import wait_until
from tests.routes.test_tmux import Terminal, terminal

__all__ = ["terminal"]
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
ONE = incoming(1).message_id


async def attached(
    bridge: Bridge, terminal: Terminal, wants: bool = True
) -> AttachmentQueue:
    """The pane's own program, attached and idle."""
    await terminal.open()
    facts = process.facts_of(terminal.pid)
    assert facts is not None
    pane = pane_want(str(terminal.socket), terminal.pane)
    record = replace(
        BOB,
        process_key=process.key_of(facts),
        setup_at=1.0,
        guidance_at=1_790_000_000.0,
        wants=(pane,) if wants else (),
    )
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    queue.is_idle = True
    return queue


async def test_one_line_is_typed_until_the_mail_is_gone_and_nobody_is_notified(
    tmp_path: Path, terminal: Terminal
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue, screen = await attached(bridge, terminal), screen_of(bridge)

        await bring(bridge, queue, 1)
        await wait_until(terminal.said.exists, "the line", 10)
        await wait_until(queue.unsent_receipts, "a receipt", 10)
        await bring(bridge, queue, 2)

        assert terminal.said.read_text() == f"{LINE}\n"
        assert "Ready for review" not in terminal.screen()
        assert [(r.message_id, r.delivery) for r in queue.unsent_receipts()] == [
            (ONE, "typed")
        ]
        assert len(queue.in_state(DeliveryState.PENDING)) == 2
        assert screen.shown == []


async def test_a_pane_in_which_another_program_runs_is_left_alone(
    tmp_path: Path, terminal: Terminal
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue, screen = await attached(bridge, terminal), screen_of(bridge)
        key = queue.record.process_key
        queue.record = replace(
            queue.record, process_key=replace(key, start=key.start + 1)
        )

        await bring(bridge, queue, 1)
        await wait_until(lambda: screen.shown, "a notification", 10)

        assert LINE not in terminal.screen()
        assert queue.unsent_receipts() == []


async def test_without_the_wish_nothing_is_typed(
    tmp_path: Path, terminal: Terminal
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, terminal, wants=False)
        screen = screen_of(bridge)

        await bring(bridge, queue, 1)
        await wait_until(lambda: screen.shown, "a notification", 10)

        assert LINE not in terminal.screen()


@pytest.mark.parametrize("wish", ["setting", "want"])
async def test_who_wants_no_waking_is_not_typed_to(
    tmp_path: Path, terminal: Terminal, wish: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue, screen = await attached(bridge, terminal), screen_of(bridge)
        if wish == "want":
            wants = (*queue.record.wants, Want.NO_WAKE.value)
            queue.record = replace(queue.record, wants=wants)
        bridge.may_wake = wish != "setting"

        await bring(bridge, queue, 1)
        await wait_until(lambda: screen.shown, "a notification", 10)

        assert LINE not in terminal.screen()
        assert queue.unsent_receipts() == []
