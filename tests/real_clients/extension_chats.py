"""A chat of a program that our extension runs inside of, as the tests use it.

Owns the setting up and attaching of such a chat, the same for Pi and opencode.
Promises to wait for what was asked for and to assert that it came once.
"""

from __future__ import annotations

from tests.fakes.chat_completions_model import ChatCompletionsModel
from tests.fakes.model_server import ModelRequest
from tests.journeys.rig.waiting import until_some
from tests.real_clients.house import House
from tests.real_clients.offers import bodies_in, times_remembered, times_seen
from tests.real_clients.rig.opencode import SLOW_S, OpencodeChat
from tests.real_clients.rig.pi import PiChat
from tests.real_clients.rig.waiting import wait_until

Chat = PiChat | OpencodeChat


async def attach(house: House, chat: Chat, name: str = "bob") -> None:
    """Attach it as a person does, by typing."""
    await chat.type(f"/agentworks attach {name}")

    async def look() -> bool:
        return (await house.row(name)).get("state") == "attached"

    await until_some(look, f"{name} attached", SLOW_S)
    if isinstance(chat, OpencodeChat):
        await chat.wait_chat()


async def attach_woken(house: House, chat: Chat, name: str = "bob") -> None:
    """The same where mail wakes a chat; the setup text, which does, is behind it."""
    await attach(house, chat, name)
    await answered(chat, await brought(chat.rig.model, f"for {name} ("))
    await house.until_row(name, state="attached", pending=0)


async def attach_asleep(house: House, chat: Chat, name: str = "bob") -> None:
    """The same where it is not woken; a first turn takes the setup text."""
    await attach(house, chat, name)
    await chat.type("first")
    await answered(chat, await brought(chat.rig.model, f"for {name} ("))
    await house.until_row(name, state="attached", pending=0)


async def brought(model: ChatCompletionsModel, text: str) -> ModelRequest:
    """The one request that brought this text to the model as new."""
    (request,) = await wait_until(
        lambda: model.turns(containing=text), f"{text!r} at the model", SLOW_S
    )
    return request


async def answered(chat: Chat, request: ModelRequest) -> None:
    """Until the chat shows what the model said to this."""
    assert request.answer is not None
    await chat.pane.wait_text(request.answer.say, SLOW_S)


def assert_came_once(model: ChatCompletionsModel, text: str) -> None:
    """In one offer, in its fences, and the conversation has it no second time."""
    turns = model.turns()
    assert bodies_in(turns).count(text) == 1
    assert times_seen(turns, text) == 1
    assert times_remembered(turns[-1], text) == 1
