"""A real Pi: attached in its chat, reached at once, and otherwise left alone."""

from __future__ import annotations

import pytest

from tests.fakes.model_server import ModelRequest
from tests.real_clients.house import House
from tests.real_clients.offers import bodies_in, times_seen
from tests.real_clients.rig.pi import PiChat, PiRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]
WAKING = pytest.mark.waking


async def open_chat(house: House, pi: PiRig) -> PiChat:
    """A Pi in a project with our extension, attached to nothing."""
    await house.install("pi")
    return await pi.open_chat()


async def attach(chat: PiChat, name: str = "bob") -> None:
    await chat.type(f"/agentworks attach {name}")
    await chat.pane.wait_text(f"Attached as {name}")


async def brought(pi: PiRig, text: str) -> ModelRequest:
    """The one request that brought this text to the model."""
    found = await wait_until(lambda: pi.model.turns(containing=text), f"{text!r}")
    (request,) = found
    return request


async def attached_and_set_up(house: House, pi: PiRig) -> PiChat:
    """Attached as bob, and the setup text, which starts a turn, behind it."""
    chat = await open_chat(house, pi)
    await attach(chat)
    await brought(pi, "for bob (pi)")
    await chat.pane.wait_text("ok ")
    await house.until_row("bob", pending=0)
    return chat


async def test_a_typed_command_attaches_and_costs_no_model_call(
    house: House, pi: PiRig
) -> None:
    chat = await open_chat(house, pi)
    await attach(chat)
    await chat.type("/agentworks agents")
    await chat.pane.wait_text("attached")
    await house.until_row("bob", provider="pi", state="attached", route="hook")
    assert pi.model.requests == []


@WAKING
async def test_an_idle_chat_is_woken_and_its_draft_stays(
    house: House, pi: PiRig
) -> None:
    chat = await attached_and_set_up(house, pi)
    alice = await house.script()
    chat.pane.write("half a thought")
    await chat.pane.wait_text("half a thought")

    await alice.send("wake up, bob")

    request = await brought(pi, "wake up, bob")
    await chat.pane.wait_text("ok 2")
    assert bodies_in([request]) == ["wake up, bob"]
    assert times_seen(pi.model.turns(), "wake up, bob") == 1
    assert "half a thought" in chat.pane.text()
    assert len(pi.model.turns()) == 2
