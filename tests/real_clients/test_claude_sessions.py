"""An attachment belongs to one session: what ends it, and what carries nothing over."""

from __future__ import annotations

import signal

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.claude_chats import (
    BOTH,
    CHAT,
    STREAM,
    Talk,
    allow_tools,
    bodies,
    offers,
    open_talk,
    seen,
    tool,
    tools_connected,
)
from tests.real_clients.house import House
from tests.real_clients.offers import offers_in
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.processes import end
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

HELLO = "hello bob, this is alice"
OFFLINE_LINE = "this chat was attached as bob and is offline"


@CHAT
async def test_clear_ends_delivery_until_the_person_attaches_again(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    alice = await house.script()
    before = bob.session_id

    await bob.chat.type("/clear")
    await wait_until(lambda: bob.session_id not in ("", before), "another session")
    await house.until_row("bob", state="offline")
    await alice.send(HELLO)
    await bob.turn("what now?")
    assert seen(claude, HELLO) == 0

    claude.model.enqueue(Step(when="who", tool=tool("peers")))
    _, answered = await bob.turn("who is there?")
    assert "not attached to AgentWorks" in answered.tool_results[0]

    await bob.command("/agentworks attach bob", "Attached")
    await house.until_row("bob", state="attached", pending=1)
    _, brought = await bob.turn("and now?")
    assert offers_in(brought)[0].bodies == (HELLO,)
    assert "attached this chat to AgentWorks as bob" in brought.new_text
    assert bodies(claude) == [HELLO]


@BOTH
async def test_a_resumed_session_is_told_how_to_reconnect_and_gets_nothing_before(
    claude: ClaudeRig, house: House, bob: Talk, kind: str
) -> None:
    alice = await house.script()
    session_id = bob.session_id
    await bob.leave()
    await house.until_row("bob", state="offline")
    await alice.send(HELLO)

    again = await open_talk(claude, kind, "--resume", session_id, name="again")
    await again.turn("what now?")

    assert again.session_id == session_id
    assert OFFLINE_LINE in again.shown()
    assert seen(claude, OFFLINE_LINE) == 0
    assert seen(claude, HELLO) == 0
    assert (await house.row("bob"))["state"] == "offline"

    await again.command("/agentworks attach", "Attached again as bob")
    await house.until_row("bob", state="attached", pending=1)
    _, brought = await again.turn("and now?")
    assert offers_in(brought)[0].bodies == (HELLO,)
    assert "attached this chat to AgentWorks" not in brought.new_text


@BOTH
async def test_a_fork_carries_nothing_over(
    claude: ClaudeRig, house: House, bob: Talk, kind: str
) -> None:
    alice = await house.script()
    arguments = ("--resume", bob.session_id, "--fork-session")
    fork = await open_talk(claude, kind, *arguments, name="fork")
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)

    await fork.turn("what now?")
    assert seen(claude, HELLO) == 0
    assert fork.session_id != bob.session_id
    assert OFFLINE_LINE not in fork.shown()

    _, brought = await bob.turn("what now?")
    assert offers_in(brought)[0].bodies == (HELLO,)
    assert bodies(claude) == [HELLO]


@CHAT
async def test_a_chat_that_resumes_another_session_leaves_its_name_behind(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    alice = await house.script()
    first = bob.session_id
    await bob.chat.type("/branch")
    await wait_until(lambda: bob.session_id not in ("", first), "a branch")
    await house.until_row("bob", state="offline")

    await alice.send(HELLO)
    await bob.turn("what now?")

    assert seen(claude, HELLO) == 0


@BOTH
async def test_a_closed_chat_is_offline_at_once(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    alice = await house.script()

    await bob.leave()
    row = await house.until_row("bob", state="offline")

    assert row["route"] == "-"
    known = (await alice.verb("peers"))["agents"]
    assert [(each["name"], each["connected"]) for each in known] == [("bob", False)]


@BOTH
async def test_a_killed_chat_is_offline_and_keeps_its_waiting_mail(
    claude: ClaudeRig, house: House, bob: Talk, kind: str
) -> None:
    alice = await house.script()
    session_id = bob.session_id
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)

    end(bob.process, signal.SIGKILL)
    await house.until_row("bob", state="offline")

    again = await open_talk(claude, kind, "--resume", session_id, name="again")
    await again.command("/agentworks attach bob", "1 message is waiting")
    await house.until_row("bob", state="attached", pending=1)
    _, brought = await again.turn("what now?")
    assert offers_in(brought)[0].bodies == (HELLO,)


async def test_a_chat_older_than_the_hooks_says_so_and_works_after_a_reload(
    claude: ClaudeRig, house: House
) -> None:
    allow_tools(claude)
    talk = Talk(claude, await claude.open_chat())
    alice = await house.script()

    told = await house.do(
        "attach", "bob", "--provider", "claude", "--session", talk.session_id, "--yes"
    )
    await alice.send(HELLO)
    row = await house.until_row("bob", pending=1)
    await talk.turn("what now?")
    assert "/reload-plugins" in told
    assert row["route"] == row["why"] == "hooks not loaded yet"
    assert seen(claude, HELLO) == 0

    await talk.chat.type("/reload-plugins")
    await talk.chat.pane.wait_text("Reloaded")
    await tools_connected(talk)
    claude.model.enqueue(Step(when=HELLO, tool=tool("status")))
    _, brought, answered = await talk.turn("and now?")
    assert offers_in(brought)[0].bodies == (HELLO,)
    assert '"name":"bob"' in answered.tool_results[0]
    assert (await house.row("bob"))["route"] == "hook"


@STREAM
async def test_a_name_of_a_live_chat_is_not_taken_over(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    other = await open_talk(claude, "stream", name="other")

    await other.command("/agentworks attach BOB", "is the name of a live claude chat")

    assert (await house.row("bob"))["session"] == bob.session_id[-8:]
    assert len(offers(claude)) == 1
