"""Mail before a turn's end, where its person wished it: with a prompt, after a tool."""

from __future__ import annotations

import pytest

from tests.fakes.model_server import ModelRequest, Step
from tests.real_clients import codex_chats
from tests.real_clients.claude_chats import (
    BOTH,
    CHAT,
    Talk,
    allow_tools,
    attach,
    bodies,
    open_talk,
    seen,
)
from tests.real_clients.house import House
from tests.real_clients.offers import offers_in, times_remembered
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.codex import CodexRig

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

HELLO = "hello there, this is alice"
LIMIT = 9_500
RESULT = "the tool has run"


async def wish(house: House, session_id: str, name: str, *options: str) -> None:
    """The person says in a terminal how mail is to come from now on."""
    await house.do("attach", name, "--session", session_id, "--yes", *options)


def shell_step(when: str) -> Step:
    """The model runs a harmless command first."""
    return Step(when=when, tool="Bash", arguments={"command": f"echo {RESULT}"})


def brought(requests: list[ModelRequest]) -> list[int]:
    """How many messages each request brought."""
    return [sum(len(offer.bodies) for offer in offers_in(each)) for each in requests]


# ---- Claude Code -------------------------------------------------------------------


@BOTH
async def test_claude_mail_of_an_idle_chat_rides_with_the_next_prompt(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    await wish(house, bob.session_id, "bob", "--at-prompt")
    alice = await house.script()
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)

    requests = await bob.turn("what now?")
    (later,) = await bob.turn("and now?")

    assert brought(requests) == [1]
    assert "what now?" in requests[0].new_text
    assert bodies(claude) == [HELLO]
    assert seen(claude, HELLO) == times_remembered(later, HELLO) == 1
    await house.until_row("bob", pending=0, unacknowledged=1)


@CHAT
async def test_claude_a_whole_budget_rides_with_a_prompt_unshortened(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    await wish(house, bob.session_id, "bob", "--at-prompt")
    alice = await house.script()
    await alice.send("x")
    await house.until_row("bob", pending=1)
    (request,) = await bob.turn("what now?")
    around = len(offers_in(request)[0].text.strip()) - 1
    largest = "y" * (LIMIT - around - 40)
    await alice.send(largest)
    await house.until_row("bob", pending=1)

    (request,) = await bob.turn("and now?")

    assert offers_in(request)[0].bodies == (largest,)


@BOTH
async def test_claude_a_command_of_ours_takes_no_mail_with_it(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    await wish(house, bob.session_id, "bob", "--at-prompt")
    alice = await house.script()
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)

    await bob.command("/agentworks agents", "1 waiting")
    assert await house.until_row("bob", pending=1)
    await bob.turn("what now?")

    assert bodies(claude) == [HELLO]


async def test_claude_mail_comes_after_a_tool_call_where_that_was_wished(
    claude: ClaudeRig, house: House
) -> None:
    await house.do("attach", "--provider", "claude", "--mid-turn", "--yes")
    allow_tools(claude)
    bob = await open_talk(claude, "chat")
    await attach(house, bob)
    await wish(house, bob.session_id, "bob", "--mid-turn")
    alice = await house.script()
    claude.model.enqueue(
        Step(
            when="run it",
            tool="Bash",
            arguments={"command": f"echo {RESULT}"},
            hold="sent",
        )
    )

    async with bob.turning("run it"):
        await alice.send(HELLO)
        await house.until_row("bob", pending=1)
        claude.model.release("sent")

    requests = claude.model.turns(containing=RESULT)
    assert brought(requests)[0] == 1
    assert bodies(claude) == [HELLO]
    assert seen(claude, HELLO) == 1


@CHAT
async def test_claude_without_a_wish_mail_waits_for_the_turns_end(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    await wish(house, bob.session_id, "bob", "--at-prompt", "--mid-turn")
    await wish(house, bob.session_id, "bob", "--usual")
    alice = await house.script()
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)
    claude.model.enqueue(shell_step("what now?"))

    requests = await bob.turn("what now?")

    assert brought(requests) == [0, 0, 1]


# ---- Codex ---------------------------------------------------------------------------


async def carol(codex: CodexRig, house: House, *options: str) -> codex_chats.Talk:
    """A Codex attached as carol whose person typed these wishes."""
    await codex_chats.install(house)
    if "--mid-turn" in options:
        await house.do("attach", "--provider", "codex", "--mid-turn", "--yes")
    talk = await codex_chats.open_talk(codex)
    await codex_chats.attach(house, talk)
    await talk.command(f" /agentworks attach {' '.join(options)}", "Attached again")
    return talk


async def test_codex_mail_of_an_idle_chat_rides_with_the_next_prompt(
    codex: CodexRig, house: House
) -> None:
    talk = await carol(codex, house, "--at-prompt")
    alice = await house.script()
    await alice.send(HELLO, to="carol")
    await house.until_row("carol", pending=1)

    requests = await talk.turn("what now?")
    (later,) = await talk.turn("and now?")

    assert brought(requests) == [1]
    assert "what now?" in requests[0].new_text
    assert talk.bodies == [HELLO]
    assert times_remembered(later, HELLO) == 1


async def test_codex_a_whole_budget_rides_with_a_prompt_unshortened(
    codex: CodexRig, house: House
) -> None:
    talk = await carol(codex, house, "--at-prompt")
    alice = await house.script()
    await alice.send("x", to="carol")
    await house.until_row("carol", pending=1)
    (request,) = await talk.turn("what now?")
    around = len(offers_in(request)[0].text.strip().encode()) - 1
    largest = "y" * (LIMIT - around - 40)
    await alice.send(largest, to="carol")
    await house.until_row("carol", pending=1)

    (request,) = await talk.turn("and now?")

    assert offers_in(request)[0].bodies == (largest,)


async def test_codex_mail_comes_after_a_tool_call_where_that_was_wished(
    codex: CodexRig, house: House
) -> None:
    talk = await carol(codex, house, "--mid-turn")
    alice = await house.script()
    step = codex_chats.shell(f"echo {RESULT}")
    codex.model.enqueue(Step(tool=step.tool, arguments=step.arguments, hold="sent"))

    async with talk.turning("run it"):
        await alice.send(HELLO, to="carol")
        await house.until_row("carol", pending=1)
        codex.model.release("sent")

    assert talk.bodies == [HELLO]
    (request,) = [each for each in talk.requests if offers_in(each)][-1:]
    assert any(RESULT in each for each in request.tool_results)
