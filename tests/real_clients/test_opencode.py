"""A real opencode: attached in its chat, reached at once, and otherwise left alone."""

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
from tests.real_clients.rig.opencode import SLOW_S, OpencodeChat, OpencodeRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]
WAKING = pytest.mark.waking


async def open_chat(house: House, opencode: OpencodeRig) -> OpencodeChat:
    """An opencode in a project with our plugin, attached to nothing."""
    await house.install("opencode")
    return await opencode.open_chat()


async def test_a_typed_command_attaches_and_costs_no_model_call(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await attach(house, chat)
    await chat.pane.wait_text("Attached as bob", SLOW_S)
    await house.until_row("bob", provider="opencode", state="attached", route="hook")
    assert opencode.model.requests == []


async def test_without_a_bridge_the_command_says_how_to_start_one(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await house.stop()
    await chat.type("/agentworks attach bob")
    await chat.pane.wait_text("bridge is not running", SLOW_S)
    assert opencode.model.requests == []
    await chat.wait_chat()
    await chat.type("hello")
    await answered(chat, await brought(opencode.model, "hello"))
    assert len(opencode.model.turns()) == 1


@WAKING
async def test_an_idle_chat_is_woken_and_its_draft_stays(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await attach_woken(house, chat)
    alice = await house.script()
    chat.pane.write("half a thought")
    await chat.pane.wait_text("half a thought")

    await alice.send("wake up, bob")

    await answered(chat, await brought(opencode.model, "wake up, bob"))
    assert_came_once(opencode.model, "wake up, bob")
    assert "half a thought" in chat.pane.text()
    assert len(opencode.model.turns()) == 2
    await house.until_row("bob", pending=0, unacknowledged=1)


@WAKING
async def test_a_message_in_the_middle_of_a_turn_joins_it_once(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await attach_woken(house, chat)
    alice = await house.script()
    opencode.model.enqueue(Step(say="long work is done", hold="grind", when="grind"))
    await chat.type("grind")
    await brought(opencode.model, "grind")

    await alice.send("while you work")
    await house.until_row("bob", pending=0)
    opencode.model.release("grind")

    request = await brought(opencode.model, "while you work")
    await answered(chat, request)
    assert_came_once(opencode.model, "while you work")
    assert "long work is done" in str(request.body["messages"])
    assert len(opencode.model.turns()) == 3


async def test_a_chat_that_may_not_be_woken_takes_its_mail_at_the_turns_end(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await attach_asleep(house, chat)
    alice = await house.script()
    await alice.send("when you have time")
    await house.until_row("bob", pending=1)
    turns = len(opencode.model.turns())

    await chat.type("next")

    await answered(chat, await brought(opencode.model, "when you have time"))
    assert_came_once(opencode.model, "when you have time")
    assert len(opencode.model.turns()) == turns + 2
    await house.until_row("bob", pending=0)


@WAKING
async def test_of_two_chats_in_one_process_only_the_attached_one_is_reached(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await attach_woken(house, chat)
    alice = await house.script()
    await chat.type("/new")
    await chat.pane.wait_text("Ask anything", SLOW_S)
    await chat.type("the second chat")
    await answered(chat, await brought(opencode.model, "the second chat"))

    await alice.send("for the first chat")

    request = await brought(opencode.model, "for the first chat")
    await wait_until(lambda: len(opencode.model.turns()) == 3, "the third turn")
    conversation = str(request.body["messages"])
    assert "for bob (" in conversation
    assert "the second chat" not in conversation
    assert_came_once(opencode.model, "for the first chat")


@WAKING
async def test_a_bridge_that_was_killed_finds_the_chat_again_and_repeats_nothing(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await attach_woken(house, chat)
    alice = await house.script()
    await alice.send("before the end")
    await answered(chat, await brought(opencode.model, "before the end"))

    await house.kill()
    await house.start()
    assert chat.process.is_alive()
    anna = await house.script("anna")
    await anna.send("after the end")

    await answered(chat, await brought(opencode.model, "after the end"))
    assert_came_once(opencode.model, "before the end")
    assert_came_once(opencode.model, "after the end")


@WAKING
async def test_a_shell_of_the_chat_speaks_for_it(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await attach_woken(house, chat)
    alice = await house.script()
    said = "agentworks bridge message send --provider opencode --target agent:alice"
    command = {"command": f"{said} --message hi", "description": "greets"}
    opencode.model.enqueue(Step(tool="bash", arguments=command, when="greet"))

    await chat.type("greet")

    assert "hi" in await alice.mail()
    await wait_until(lambda: len(opencode.model.turns()) == 3, "the end", SLOW_S)


@WAKING
async def test_a_subtask_is_not_the_chat(house: House, opencode: OpencodeRig) -> None:
    chat = await open_chat(house, opencode)
    await attach_woken(house, chat)
    alice = await house.script()
    task = {
        "description": "look",
        "prompt": "the subtask's own prompt",
        "subagent_type": "general",
    }
    opencode.model.enqueue(
        Step(tool="task", arguments=task, when="delegate"),
        Step(say="subtask done", hold="subtask", when="the subtask's own prompt"),
    )
    await chat.type("delegate")
    await brought(opencode.model, "the subtask's own prompt")

    await alice.send("meanwhile")
    await house.until_row("bob", pending=0)
    opencode.model.release("subtask")

    request = await brought(opencode.model, "meanwhile")
    assert "for bob (" in str(request.body["messages"])
    assert_came_once(opencode.model, "meanwhile")
