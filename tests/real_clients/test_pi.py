"""A real Pi: attached in its chat, reached at once, and otherwise left alone."""

from __future__ import annotations

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.extension_chats import (
    answered,
    assert_came_once,
    attach,
    attach_asleep,
    attach_woken,
    brought,
)
from tests.real_clients.house import House
from tests.real_clients.rig.opencode import SLOW_S
from tests.real_clients.rig.pi import PiChat, PiRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]
WAKING = pytest.mark.waking


async def open_chat(house: House, pi: PiRig) -> PiChat:
    """A Pi in a project with our extension, attached to nothing."""
    await house.install("pi")
    return await pi.open_chat()


async def test_a_typed_command_attaches_and_costs_no_model_call(
    house: House, pi: PiRig
) -> None:
    chat = await open_chat(house, pi)
    await attach(house, chat)
    await chat.pane.wait_text("Attached as bob", SLOW_S)
    await chat.type("/agentworks nonsense")
    await chat.pane.wait_text("There is no command “nonsense” here")
    await house.until_row("bob", provider="pi", state="attached", route="hook")
    assert pi.model.requests == []


async def test_without_a_bridge_the_command_says_how_to_start_one(
    house: House, pi: PiRig
) -> None:
    chat = await open_chat(house, pi)
    await house.stop()
    await chat.type("/agentworks attach bob")
    await chat.pane.wait_text("The AgentWorks bridge is not running")
    await chat.ask("hello", "ok 1")
    assert len(pi.model.turns()) == 1


@WAKING
async def test_an_idle_chat_is_woken_and_its_draft_stays(
    house: House, pi: PiRig
) -> None:
    chat = await open_chat(house, pi)
    await attach_woken(house, chat)
    alice = await house.script()
    chat.pane.write("half a thought")
    await chat.pane.wait_text("half a thought")

    await alice.send("wake up, bob")

    await answered(chat, await brought(pi.model, "wake up, bob"))
    assert_came_once(pi.model, "wake up, bob")
    assert "half a thought" in chat.pane.text()
    assert len(pi.model.turns()) == 2
    await house.until_row("bob", pending=0, unacknowledged=1)


@WAKING
async def test_a_message_in_the_middle_of_a_turn_comes_once_after_it(
    house: House, pi: PiRig
) -> None:
    chat = await open_chat(house, pi)
    await attach_woken(house, chat)
    alice = await house.script()
    pi.model.enqueue(Step(say="long work is done", hold="grind", when="grind"))
    await chat.type("grind")
    await brought(pi.model, "grind")

    await alice.send("while you work")
    await house.until_row("bob", pending=0)
    pi.model.release("grind")

    request = await brought(pi.model, "while you work")
    await answered(chat, request)
    assert_came_once(pi.model, "while you work")
    assert "long work is done" in str(request.body["messages"])
    assert len(pi.model.turns()) == 3


async def test_a_chat_that_may_not_be_woken_takes_its_mail_at_the_turns_end(
    house: House, pi: PiRig
) -> None:
    chat = await open_chat(house, pi)
    await attach_asleep(house, chat)
    alice = await house.script()
    await alice.send("when you have time")
    await house.until_row("bob", pending=1)
    turns = len(pi.model.turns())

    await chat.type("next")

    await answered(chat, await brought(pi.model, "when you have time"))
    assert_came_once(pi.model, "when you have time")
    assert len(pi.model.turns()) == turns + 2
    await house.until_row("bob", pending=0)


@WAKING
async def test_a_new_chat_of_the_same_program_has_nothing_of_the_old_one(
    house: House, pi: PiRig
) -> None:
    chat = await open_chat(house, pi)
    await attach_woken(house, chat)
    alice = await house.script()

    await chat.type("/new")
    await house.until_row("bob", state="offline")
    await alice.send("for the old chat")
    await chat.ask("hello", "ok 2")
    await chat.type("/agentworks attach carol")
    await chat.pane.wait_text("Attached as carol")
    await answered(chat, await brought(pi.model, "for carol ("))

    assert pi.model.turns(containing="for the old chat") == []
    await house.until_row("carol", state="attached")
    await house.until_row("bob", state="offline")


@WAKING
async def test_a_bridge_that_was_killed_finds_the_chat_again_and_repeats_nothing(
    house: House, pi: PiRig
) -> None:
    chat = await open_chat(house, pi)
    await attach_woken(house, chat)
    alice = await house.script()
    await alice.send("before the end")
    await answered(chat, await brought(pi.model, "before the end"))

    await house.kill()
    await house.start()
    assert chat.process.is_alive()
    alice = await house.script("anna")
    await alice.send("after the end")

    await answered(chat, await brought(pi.model, "after the end"))
    assert_came_once(pi.model, "before the end")
    assert_came_once(pi.model, "after the end")


@WAKING
async def test_the_model_answers_with_the_messaging_tools(
    house: House, pi: PiRig
) -> None:
    chat = await open_chat(house, pi)
    await attach_woken(house, chat)
    alice = await house.script()
    sent = await alice.send("what is the plan?")
    request = await brought(pi.model, "what is the plan?")
    await answered(chat, request)
    assert "mcp__agentworks__agent_message_reply" in request.tool_names

    pi.model.enqueue(
        Step(
            tool="mcp__agentworks__agent_message_ack",
            arguments={"message_id": sent["message_id"], "delivery": "processed"},
            when="acknowledge",
        )
    )
    await chat.type("acknowledge")
    await house.receipt(alice, sent["message_id"], "processed")


@WAKING
async def test_a_shell_of_the_chat_speaks_for_it(house: House, pi: PiRig) -> None:
    chat = await open_chat(house, pi)
    await attach_woken(house, chat)
    alice = await house.script()
    said = "agentworks bridge message send --provider pi --target agent:alice"
    pi.model.enqueue(
        Step(tool="bash", arguments={"command": f"{said} --message hi"}, when="greet")
    )

    await chat.type("greet")

    assert "hi" in await alice.mail()
    await wait_until(lambda: len(pi.model.turns()) == 3, "the end", SLOW_S)
