"""A real Claude Code in a tmux pane is told to read its mailbox, if that is wished."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.routes.tmux import LINE
from tests.real_clients.claude_chats import CHAT, Talk, attach, bodies, seen
from tests.real_clients.house import House
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow, pytest.mark.waking]

HELLO = "hello bob, this is alice"


@pytest.fixture
async def bob(house: House, talk: Talk) -> Talk:
    """Attached, in a chat whose own inbox is refused: others may change its folder."""
    inbox = Path(str(talk.chat.registration["messagingSocketPath"]))
    inbox.parent.chmod(0o770)
    await attach(house, talk)
    return talk


async def wish(house: House, bob: Talk) -> None:
    """The person names the chat's pane, in another terminal of the same tmux."""
    terminals = house.computer.terminals
    asked = ("display-message", "-p", "-t", bob.chat.pane.name)
    pane = terminals.run(*asked, "#{pane_id}").strip()
    socket = terminals.run(*asked, "#{socket_path}").strip()
    chosen = ("attach", "bob", "--session", bob.session_id, "--tmux", pane, "--yes")
    done = await house.computer.run(
        "agentworks", *chosen, extra={"TMUX": f"{socket},1,0"}
    )
    assert done.code == 0, done


@CHAT
async def test_an_idle_chat_in_its_pane_is_told_and_has_its_mail_at_that_turns_end(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    await wish(house, bob)
    alice = await house.script()

    sent = await alice.send(HELLO)

    await wait_until(lambda: seen(claude, HELLO), "the message at the model")
    await bob.chat.wait_idle()
    assert seen(claude, LINE) == 1
    assert bodies(claude) == [HELLO]
    await house.until_row("bob", pending=0)
    await house.receipt(alice, sent["message_id"], "typed")


@CHAT
async def test_a_half_typed_prompt_is_left_alone(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    await wish(house, bob)
    alice = await house.script()
    bob.chat.pane.write("half a thought")
    await bob.chat.pane.wait_text("half a thought")

    await alice.send(HELLO)
    await house.until_row("bob", pending=1)
    await wait_until(
        lambda: [line for line in house.log() if line["event"] == "nudged"],
        "a look at the pane",
    )

    assert LINE not in bob.chat.pane.text()
    assert seen(claude, LINE) == 0
    assert "half a thought" in bob.chat.pane.text()
