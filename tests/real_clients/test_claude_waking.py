"""A real Claude Code reached at once: idle, in the middle of a turn, with a draft."""

from __future__ import annotations

import pytest

from tests.real_clients.claude_chats import CHAT, Talk, attach_waking, seen
from tests.real_clients.house import House
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow, pytest.mark.waking]


@CHAT
async def test_an_idle_chat_is_woken_and_its_draft_stays(
    house: House, claude: ClaudeRig, talk: Talk
) -> None:
    bob = talk
    await attach_waking(claude, house, bob)
    alice = await house.script()
    await bob.chat.pane.type("half a thought")
    await bob.chat.pane.wait_text("half a thought")

    await alice.send("wake up, bob")

    await wait_until(lambda: seen(claude, "wake up, bob"), "the message at the model")
    await bob.chat.wait_idle()
    assert seen(claude, "wake up, bob") == 1
    assert "half a thought" in bob.chat.pane.text()
    await house.until_row("bob", pending=0)
