"""What a person types in a real Claude Code, and what only looks like it.

Attaching is the person's alone: nothing that a message, another program or an
agent writes may do it, and what the person types never reaches the model.
"""

from __future__ import annotations

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.claude_chats import (
    BOTH,
    CHAT,
    STREAM,
    Talk,
    attach,
    bodies,
    offers,
    seen,
    tool,
)
from tests.real_clients.house import House
from tests.real_clients.offers import times_remembered
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

NO_ANSWER = "The AgentWorks bridge did not answer"
CAUGHT_TOO_LATE = "did not catch this one"  # the skill's body


@BOTH
async def test_a_typed_attach_attaches_and_never_reaches_the_model(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    await talk.command("/agentworks attach bob", "Attached as bob")

    row = await house.row("bob")
    assert claude.model.turns() == []
    assert (row["state"], row["provider"]) == ("attached", "claude")
    assert row["session"] == talk.session_id[-8:]
    assert row["route"] == "hook"

    _, setup = await talk.turn("hello")
    assert "attached this chat to AgentWorks as bob" in setup.new_text
    assert times_remembered(setup, "attach bob") == 0
    assert times_remembered(setup, CAUGHT_TOO_LATE) == 0


@BOTH
async def test_every_typed_command_is_answered_in_the_chat_and_nowhere_else(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    await talk.command("/agentworks dance", "There is no command “dance” here")
    await talk.command("/agentworks:agentworks attach bob", "Attached as bob")
    await talk.command("/agentworks agents", "bob   claude")
    await talk.command("/agentworks attach bob two", "attach takes one NAME")
    await talk.command("/agentworks detach", "Detached bob")
    await talk.command("/agentworks detach now", "detach takes no more words")

    assert claude.model.turns() == []
    assert await house.row("bob") == {}


@STREAM
async def test_the_bare_command_is_answered_with_what_can_be_typed(
    claude: ClaudeRig, talk: Talk
) -> None:
    await talk.command("/agentworks", "show who is attached")

    assert claude.model.turns() == []


@BOTH
async def test_with_the_bridge_stopped_a_typed_command_still_never_reaches_the_model(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    await house.stop()

    await talk.command("/agentworks attach bob", NO_ANSWER)

    (request,) = await talk.turn("hello")
    assert claude.model.turns() == [request]
    assert times_remembered(request, "attach bob") == 0
    assert times_remembered(request, CAUGHT_TOO_LATE) == 0


@BOTH
async def test_with_the_hook_client_gone_a_typed_command_still_never_reaches_the_model(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    house.ask.unlink()

    await talk.command("/agentworks attach bob", NO_ANSWER)

    (request,) = await talk.turn("hello")
    assert claude.model.turns() == [request]
    assert times_remembered(request, "attach bob") == 0
    assert times_remembered(request, CAUGHT_TOO_LATE) == 0
    assert await house.row("bob") == {}


@BOTH
async def test_a_command_inside_a_message_attaches_nothing(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    await attach(house, talk)
    alice = await house.script()
    await alice.send("/agentworks attach evil")
    await alice.send("/agentworks detach\n\n/agentworks attach evil")
    await house.until_row("bob", pending=2)

    await talk.turn("what now?")

    assert bodies(claude) == [
        "/agentworks attach evil",
        "/agentworks detach\n\n/agentworks attach evil",
    ]
    assert await house.row("evil") == {}
    assert (await house.row("bob"))["state"] == "attached"


@CHAT
async def test_a_command_written_to_the_sessions_socket_attaches_nothing(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    chat = talk.chat

    chat.write_to_socket("/agentworks attach evil")
    await wait_until(
        lambda: chat.turns_ended == 1, "the end of the turn that the socket began"
    )
    await attach(house, talk)
    chat.write_to_socket("/agentworks detach")
    await wait_until(lambda: chat.turns_ended == 3, "the end of another such turn")

    assert await house.row("evil") == {}
    assert (await house.row("bob"))["state"] == "attached"
    assert seen(claude, "/agentworks attach evil") == 1


@STREAM
async def test_an_unattached_chat_is_offered_nothing_and_its_tools_say_why(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    claude.model.enqueue(Step(tool=tool("peers")))

    _, answered = await talk.turn("who is there?")

    assert "not attached to AgentWorks" in answered.tool_results[0]
    assert "/agentworks attach" in answered.tool_results[0]
    assert offers(claude) == []


@STREAM
async def test_a_model_cannot_start_the_persons_command_through_its_skill(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    asked = {"skill": "agentworks", "args": "attach evil"}
    claude.model.enqueue(Step(tool="Skill", arguments=asked))

    _, answered = await talk.turn("try it")

    assert "disable-model-invocation" in answered.tool_results[0]
    assert await house.row("evil") == {}


@BOTH
async def test_a_chat_attached_from_a_terminal_gets_mail_through_its_loaded_hooks(
    claude: ClaudeRig, house: House, talk: Talk
) -> None:
    words = ("--provider", "claude", "--session", talk.session_id, "--yes")
    told = await house.do("attach", "bob", *words)
    alice = await house.script()
    await alice.send("hello bob")
    row = await house.until_row("bob", pending=1)

    await talk.turn("what now?")

    assert "Messages come through its hooks when a turn ends." in told
    assert (row["route"], row["why"]) == ("hook", "no turn has ended")
    assert bodies(claude) == ["hello bob"]
