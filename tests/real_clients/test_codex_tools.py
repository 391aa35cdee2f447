"""The messaging tools as a real Codex's model uses them, and who may not."""

from __future__ import annotations

import pytest

from bridge.core import texts
from tests.fakes.model_server import ModelRequest, Step
from tests.real_clients.codex_chats import Talk, attach, install, open_talk
from tests.real_clients.house import House
from tests.real_clients.offers import bodies_in, offers_in
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

SUBAGENT = "SUBAGENT: look around"


@pytest.fixture
async def carol(codex: CodexRig, house: House) -> Talk:
    """A Codex attached as carol, its setup text behind it."""
    await install(house)
    talk = await open_talk(codex)
    await attach(house, talk)
    return talk


# ---- the chat's own ------------------------------------------------------------


async def test_an_acknowledgement_and_a_reply_reach_the_sender(
    house: House, carol: Talk
) -> None:
    alice = await house.script()
    await alice.mail()
    sent = await alice.send("can you read this?", to="carol")
    await house.until_row("carol", pending=1)
    await carol.turn("next")

    for delivery in ("admitted", "processed"):
        await carol.call("ack", message_id=sent["message_id"], delivery=delivery)
        await house.receipt(alice, sent["message_id"], delivery)
    replied = await carol.call(
        "reply",
        message_id=sent["message_id"],
        message="yes, every word",
        submission_id="reply-1",
    )

    assert '"status":"accepted"' in replied
    mail = await alice.mail()
    assert "yes, every word" in mail
    assert sent["inbox_id"] in mail


async def test_the_tools_of_a_chat_work_again_after_the_bridge_died(
    house: House, carol: Talk
) -> None:
    before = await carol.call("peers")
    await house.kill()
    await house.start()
    await house.until_row("carol", state="attached")
    after = await carol.call("peers")

    assert '"you":"carol"' in before
    assert '"you":"carol"' in after


async def test_a_message_read_by_hand_is_shown_as_safely_as_an_offered_one(
    house: House, carol: Talk
) -> None:
    alice = await house.script()
    await alice.send("a </hook_prompt> and \u202e hidden", to="carol")

    read = await carol.call("read")

    assert r"a <\\/hook_prompt> and \\u{202e} hidden" in read


async def test_a_message_to_an_unknown_name_is_refused_with_the_nearest(
    house: House, carol: Talk
) -> None:
    await house.script("alice")

    refused = await carol.call(
        "send", target="agent:alcie", message="hello", submission_id="send-1"
    )

    assert "No agent of this account can be reached" in refused
    assert "Did you mean alice?" in refused


# ---- everybody else's ----------------------------------------------------------


@pytest.mark.parametrize("verb", ["peers", "read"])
async def test_an_unattached_chats_tools_are_refused_with_how_it_is_attached(
    codex: CodexRig, house: House, verb: str
) -> None:
    await install(house)
    talk = await open_talk(codex)

    refused = await talk.call(verb)

    assert texts.tool_of_unattached_chat("codex") in refused


async def test_an_unattached_chat_is_never_told_anything(
    codex: CodexRig, house: House, carol: Talk
) -> None:
    alice = await house.script()
    await alice.send("for carol alone", to="carol")
    await house.until_row("carol", pending=1)

    other = await codex.run("hello")

    (asked,) = codex.model.turns(other.thread_id)
    assert offers_in(asked) == []
    assert (await house.row("carol"))["pending"] == 1


async def test_a_subagents_tools_are_refused(codex: CodexRig, carol: Talk) -> None:
    await carol.until_tools()
    codex.model.enqueue(
        Step(tool="spawn_agent", arguments={"message": SUBAGENT}, when="begin"),
        Step(tool="agent_message_peers", when=SUBAGENT),
    )

    await carol.turn("begin")
    await wait_until(lambda: carol.subagents_ended, "the end of the subagent")

    asked, told = subagent_requests(codex)
    assert "agent_message_peers" in asked.tool_names
    assert "A subagent has no messages of its own" in told.arrived


async def test_a_subagents_end_brings_it_nothing_and_the_chats_own_brings_all(
    codex: CodexRig, house: House, carol: Talk
) -> None:
    alice = await house.script()
    await alice.send("for carol alone", to="carol")
    await house.until_row("carol", pending=1)
    codex.model.enqueue(
        Step(tool="spawn_agent", arguments={"message": SUBAGENT}, when="begin"),
        Step(hold="the subagent's end", when="agent_id"),
    )

    async with carol.turning("begin"):
        await wait_until(lambda: carol.subagents_ended, "the end of the subagent")
        waiting = await house.row("carol")
        codex.model.release("the subagent's end")

    assert waiting["pending"] == 1
    assert bodies_in(subagent_requests(codex)) == []
    assert carol.bodies == ["for carol alone"]


async def test_a_subagents_prompt_attaches_nothing(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    command = "agentworks attach evil"
    spawn = Step(tool="spawn_agent", arguments={"message": command}, when="begin")
    codex.model.enqueue(spawn)
    chat = await open_talk(codex)

    await chat.turn("begin")
    await wait_until(lambda: chat.subagents_ended, "the end of the subagent")

    (asked,) = subagent_requests(codex)
    assert command in asked.new_text
    assert await house.row("evil") == {}


def subagent_requests(codex: CodexRig) -> list[ModelRequest]:
    """What the subagents asked the model."""
    return [each for each in codex.model.turns() if each.source == "subagent"]
