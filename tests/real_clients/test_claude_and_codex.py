"""The whole way round: a real Claude Code and a real Codex write to each other."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from msgspec import Struct

from tests.fakes.model_server import Answer, ModelRequest, Step
from tests.real_clients import claude_chats, codex_chats
from tests.real_clients.house import House
from tests.real_clients.offers import bodies_in, offers_in
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.codex import CodexRig

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

QUESTION = "Does the parser take comments now?"
ANSWER = "Yes, since this morning; the tests are in."

Tool = Callable[..., Step]


class Both(Struct, frozen=True):
    """Bob, a Claude Code, and carol, a Codex, attached in one project."""

    bob: claude_chats.Talk
    carol: codex_chats.Talk


@pytest.fixture
async def both(claude: ClaudeRig, codex: CodexRig, house: House) -> Both:
    """Both set up, opened and attached as the person does it."""
    await house.install("claude")
    await codex_chats.install(house)
    claude_chats.allow_tools(claude)
    bob = await claude_chats.open_talk(claude, "chat", name="bob")
    carol = await codex_chats.open_talk(codex, "carol")
    await claude_chats.attach(house, bob, "bob")
    await codex_chats.attach(house, carol, "carol")
    await carol.until_tools()
    return Both(bob, carol)


async def test_a_question_from_claude_is_answered_by_codex(
    claude: ClaudeRig, codex: CodexRig, house: House, both: Both
) -> None:
    bob, carol = both.bob, both.carol

    claude.model.enqueue(asking(claude_tool, "carol"))
    await bob.turn("ask carol whether the parser takes comments")
    await house.until_row("carol", pending=1)

    codex.model.enqueue(*answering(codex_chats.tool))
    (asked, brought, *_) = await carol.turn("run the tests")
    await house.until_row("bob", pending=1)

    claude.model.enqueue(claude_tool("status", id="question"))
    _, known, answered = await bob.turn("go on")

    assert bodies_in([asked]) == []
    assert bodies_in([brought]) == [QUESTION]
    assert '"delivery":"processed"' in known.arrived
    assert bodies_in([answered]) == [ANSWER]
    assert inbox_of(answered) == inbox_of(brought)


async def test_a_question_from_codex_is_answered_by_claude(
    claude: ClaudeRig, codex: CodexRig, house: House, both: Both
) -> None:
    bob, carol = both.bob, both.carol

    codex.model.enqueue(asking(codex_chats.tool, "bob"))
    await carol.turn("ask bob whether the parser takes comments")
    await house.until_row("bob", pending=1)

    claude.model.enqueue(*answering(claude_tool))
    (asked, brought, *_) = await bob.turn("run the tests")
    await house.until_row("carol", pending=1)

    codex.model.enqueue(codex_chats.tool("status", id="question"))
    _, known, answered = await carol.turn("go on")

    assert bodies_in([asked]) == []
    assert bodies_in([brought]) == [QUESTION]
    assert '"delivery":"processed"' in known.arrived
    assert bodies_in([answered]) == [ANSWER]
    assert inbox_of(answered) == inbox_of(brought)


# ---- what the models do -----------------------------------------------------------


def claude_tool(verb: str, **arguments: object) -> Step:
    """Claude's model uses one of our tools."""
    return Step(tool=claude_chats.tool(verb), arguments=arguments)


def asking(tool: Tool, name: str) -> Step:
    """A model puts the question to an agent."""
    words = {"message": QUESTION, "submission_id": "question"}
    return tool("send", target=f"agent:{name}", **words)


def answering(tool: Tool) -> list[Answer]:
    """What a model does with the next message: admit it, answer it, be done with it."""
    read: list[str] = []

    def admit(request: ModelRequest) -> Step | None:
        read.extend(id_ for offer in offers_in(request) for id_ in offer.message_ids)
        return tool("ack", message_id=read[0], delivery="admitted") if read else None

    def reply(_: ModelRequest) -> Step | None:
        words = {"message": ANSWER, "submission_id": "answer"}
        return tool("reply", message_id=read[0], **words) if read else None

    def be_done(_: ModelRequest) -> Step | None:
        return tool("ack", message_id=read[0], delivery="processed") if read else None

    return [admit, reply, be_done]


def inbox_of(request: ModelRequest) -> str:
    """The conversation that the one message in a request belongs to."""
    (inbox,) = set(re.findall(r"inbox-[0-9a-f-]+", request.new_text))
    return str(inbox)
