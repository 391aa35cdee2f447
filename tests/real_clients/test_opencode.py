"""A real opencode: attached in its chat, reached at once, and otherwise left alone."""

from __future__ import annotations

import pytest

from tests.fakes.model_server import ModelRequest
from tests.real_clients.house import House
from tests.real_clients.offers import bodies_in, times_seen
from tests.real_clients.rig.opencode import OpencodeChat, OpencodeRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]
WAKING = pytest.mark.waking


async def open_chat(house: House, opencode: OpencodeRig) -> OpencodeChat:
    """An opencode in a project with our plugin, attached to nothing."""
    await house.install("opencode")
    return await opencode.open_chat()


async def attach(chat: OpencodeChat, name: str = "bob") -> None:
    await chat.type(f"/agentworks attach {name}")
    await chat.pane.wait_text(f"Attached as {name}")


async def brought(opencode: OpencodeRig, text: str) -> ModelRequest:
    """The one request that brought this text to the model."""
    found = await wait_until(lambda: opencode.model.turns(containing=text), f"{text!r}")
    (request,) = found
    return request


async def test_a_typed_command_attaches_and_costs_no_model_call(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await attach(chat)
    await house.until_row("bob", provider="opencode", state="attached", route="hook")
    assert opencode.model.requests == []


@WAKING
async def test_an_idle_chat_is_woken_and_its_draft_stays(
    house: House, opencode: OpencodeRig
) -> None:
    chat = await open_chat(house, opencode)
    await attach(chat)
    await brought(opencode, "for bob (opencode)")
    await house.until_row("bob", pending=0)
    alice = await house.script()
    chat.pane.write("half a thought")
    await chat.pane.wait_text("half a thought")

    await alice.send("wake up, bob")

    request = await brought(opencode, "wake up, bob")
    assert bodies_in([request]) == ["wake up, bob"]
    assert times_seen(opencode.model.turns(), "wake up, bob") == 1
    assert "half a thought" in chat.pane.text()
