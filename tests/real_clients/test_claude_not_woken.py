"""A real Claude Code that is not written to, or did not let in what was written."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from tests.real_clients.claude_chats import (
    CHAT,
    Talk,
    allow_tools,
    attach_waking,
    bodies,
    offers,
    open_talk,
    seen,
)
from tests.real_clients.house import House
from tests.real_clients.offers import offers_in
from tests.real_clients.rig.claude import ClaudeChat, ClaudeRig
from tests.real_clients.rig.processes import end
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow, pytest.mark.waking]

HELLO = "hello bob, this is alice"
_WRITTEN_TO = "[uds-messaging] Client connected"
_SETTINGS_READ = "Settings changed from localSettings"


async def opened(claude: ClaudeRig, house: House, inbound: str) -> Talk:
    """A chat whose project says this of messages from other programs."""
    await house.install("claude")
    allow_tools(claude)
    claude.add_settings({"crossSessionInbound": inbound})
    return await open_talk(claude, "chat")


async def choose_inbound(claude: ClaudeRig, chat: ClaudeChat, inbound: str) -> None:
    """The person changes that setting while the chat is open."""
    known = _said(chat, _SETTINGS_READ)
    claude.add_settings({"crossSessionInbound": inbound})
    await wait_until(lambda: _said(chat, _SETTINGS_READ) > known, "the new setting")


def _said(chat: ClaudeChat, words: str) -> int:
    return chat.debug_log.read_text(errors="replace").count(words)


async def test_what_a_chat_turns_away_comes_by_its_hook_and_the_person_is_told(
    house: House, claude: ClaudeRig
) -> None:
    bob = await opened(claude, house, "refuse")
    await bob.command("/agentworks attach bob", "Attached as bob")
    row = await house.until_row("bob", state="attached", route="hook")
    alice = await house.script()
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)
    assert seen(claude, HELLO) == 0

    await bob.turn("good morning")

    await house.until_row("bob", pending=0)
    assert seen(claude, HELLO) == 1
    assert "crossSessionInbound" in row["note"]
    assert "turned the last messages away" in await house.do("bridge", "status")


async def test_what_a_chat_holds_is_unsure_and_comes_once_when_it_is_let_in(
    house: House, claude: ClaudeRig
) -> None:
    bob = await opened(claude, house, "accept")
    await attach_waking(claude, house, bob)
    await choose_inbound(claude, bob.chat, "hold")
    alice = await house.script()

    held = await alice.send("held for review")
    await house.until_row("bob", pending=0, route="hook")
    await alice.send("by the hook then")
    await house.until_row("bob", pending=1)
    turns = await bob.turn("good morning")

    (offer,) = [offer for each in turns for offer in offers_in(each)]
    assert offer.bodies == ("by the hook then",)
    assert offer.text.count(held["message_id"]) == 1
    assert "until you approve them" in await house.do("bridge", "status")
    assert seen(claude, "held for review") == 0

    await choose_inbound(claude, bob.chat, "accept")
    await wait_until(lambda: seen(claude, "held for review"), "what was held")
    await bob.chat.wait_idle()
    assert bodies(claude) == ["by the hook then", "held for review"]


@CHAT
async def test_after_clear_nothing_goes_to_the_new_session(
    house: House, claude: ClaudeRig, talk: Talk
) -> None:
    await attach_waking(claude, house, talk)
    alice = await house.script()
    first, written = talk.session_id, _said(talk.chat, _WRITTEN_TO)

    await talk.chat.type("/clear")
    await wait_until(lambda: talk.session_id not in ("", first), "a new session")
    await house.until_row("bob", state="offline", route="-")
    await alice.send(HELLO)
    await talk.turn("what now?")

    assert seen(claude, HELLO) == 0
    assert _said(talk.chat, _WRITTEN_TO) == written


@CHAT
async def test_a_socket_that_a_killed_chat_left_behind_is_never_written_to(
    house: House, claude: ClaudeRig, talk: Talk, kind: str
) -> None:
    await attach_waking(claude, house, talk)
    alice = await house.script()
    session_id, place = talk.session_id, talk.chat.registration["messagingSocketPath"]

    end(talk.process, signal.SIGKILL)
    Path(place).unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(place)
        other.listen()
        other.setblocking(False)
        await alice.send(HELLO)
        await house.until_row("bob", state="offline")
        again = await open_talk(claude, kind, "--resume", session_id, name="again")
        await again.command("/agentworks attach bob", "Attached again as bob")
        await wait_until(lambda: seen(claude, HELLO), "the message at the new process")
        with pytest.raises(BlockingIOError):
            other.accept()

    assert bodies(claude) == [HELLO]


@CHAT
@pytest.mark.parametrize("wish", ["setting", "want"])
async def test_who_wants_no_waking_is_never_written_to(
    house: House, claude: ClaudeRig, talk: Talk, wish: str
) -> None:
    if wish == "setting":
        await house.stop()
        house.choose(wake="never")
        await house.start()
        await talk.command("/agentworks attach bob", "Attached as bob")
    else:
        chosen = ("--provider", "claude", "--session", talk.session_id, "--no-wake")
        await house.do("attach", "bob", *chosen, "--yes")
    alice = await house.script()
    await alice.send(HELLO)
    await house.until_row("bob", state="attached", pending=1)
    assert _said(talk.chat, _WRITTEN_TO) == 0

    _, brought = await talk.turn("good morning")

    assert offers_in(brought)[0].bodies == (HELLO,)
    assert (await house.row("bob"))["route"] == "hook"
    assert _said(talk.chat, _WRITTEN_TO) == 0


async def test_a_chat_without_permission_prompts_lets_its_person_decide(
    house: House, claude: ClaudeRig
) -> None:
    folder = claude.computer.home / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text('{"skipDangerousModePermissionPrompt":true}')
    claude.variables["IS_SANDBOX"] = "1"  # or it does not start as root
    await house.install("claude")
    allow_tools(claude)
    bob = await open_talk(claude, "chat", "--permission-mode", "bypassPermissions")

    await bob.chat.type("/agentworks attach bob")
    await bob.chat.pane.wait_text("Held message from another session")
    row = await house.until_row("bob", state="attached", route="hook")
    assert "holds messages of other programs" in row["note"]
    alice = await house.script()
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)
    assert not claude.model.turns()

    bob.chat.pane.press("Down", "Enter")  # Deliver this message to Claude
    await wait_until(lambda: seen(claude, HELLO), "the message behind the setup text")
    await bob.chat.wait_idle()
    assert len(offers(claude)) == 2
    assert bodies(claude) == [HELLO]
