"""A shell below a real Claude Code: what its agent may do there, and what not."""

from __future__ import annotations

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.claude_chats import STREAM, Talk, open_talk
from tests.real_clients.house import House
from tests.real_clients.rig.claude import ClaudeRig

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

HELLO = "hello bob, this is alice"


async def in_shell(claude: ClaudeRig, talk: Talk, command: str) -> str:
    """What the agent reads of one command."""
    asked = {"command": command, "timeout": 60_000}
    claude.model.enqueue(Step(when="run it", tool="Bash", arguments=asked))
    answers = [each.tool_results for each in await talk.turn("run it")]
    (answer,) = next(each for each in answers if each)
    return answer


@STREAM
async def test_an_agent_attaches_and_detaches_its_own_chat_and_no_other(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    other = await open_talk(claude, "stream", name="other")
    chosen = f"agentworks attach evil --session {other.session_id}"

    assert "this chat and no other" in await in_shell(claude, talk, chosen)
    everywhere = "agentworks attach --provider claude --global --yes"
    assert "may not use --global" in await in_shell(claude, talk, everywhere)
    assert "bob" in await in_shell(claude, talk, "agentworks attach bob")
    row = await house.until_row("bob", state="attached")
    assert row["session"] == talk.session_id[-8:]
    assert await house.row("evil") == {}

    refused = await in_shell(claude, talk, "agentworks attach robert")
    assert "may not rename it" in refused
    assert "Detached bob" in await in_shell(claude, talk, "agentworks detach")
    assert await house.row("bob") == {}


@STREAM
async def test_an_agents_shell_uses_its_own_mail_and_nothing_of_the_persons(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    alice = await house.script()
    sent = await alice.send(HELLO)
    await house.until_row("bob", pending=1)
    message = "agentworks bridge message"
    ours, id_ = "--provider claude", sent["message_id"]

    assert "alice" in await in_shell(claude, bob, f"{message} peers {ours}")
    await in_shell(
        claude, bob, f"{message} ack {ours} --message-id {id_} --delivery processed"
    )
    await house.receipt(alice, id_, "processed")
    answer = f"--message-id {id_} --message 'hi' --submission-id 1"
    replied = await in_shell(claude, bob, f"{message} reply {ours} {answer}")
    assert "Accepted as msg-" in replied
    assert "from bob (claude)" in await alice.mail()

    for forbidden in ("messages list", "bridge stop", "detach alice", "detach"):
        refused = await in_shell(claude, bob, f"agentworks {forbidden}")
        assert "Error: " in refused
    assert (await house.row("bob"))["state"] == "attached"
    assert (await house.row("alice"))["state"] == "attached"


@STREAM
async def test_a_chat_that_an_agent_starts_cannot_be_attached_by_what_it_types(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    typed = f"{claude.program} -p '/agentworks attach evil' < /dev/null"

    told = await in_shell(claude, bob, typed)

    assert "this claude runs below another coding agent" in told
    assert await house.row("evil") == {}
    assert claude.model.turns(containing="attach evil") == []
