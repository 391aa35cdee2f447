"""Chats of hosts that are reached at the end of a turn, with the product in them.

Owns what the tests of Gemini CLI, Copilot CLI and Qwen Code share: a chat whose
turns are counted by what reaches its fake model. Promises that a turn is waited for
until its last expected request, and that one request more is not overlooked: the
next turn would begin with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from tests.fakes.model_server import Answer, ModelRequest, ModelServer, Step
from tests.real_clients.house import House
from tests.real_clients.offers import bodies_in, offers_in
from tests.real_clients.rig.terminal import Pane
from tests.real_clients.rig.waiting import wait_until


class Chat(Protocol):
    """One interactive program."""

    pane: Pane

    async def type(self, text: str) -> None:
        """Type one line and press Enter."""
        ...

    async def quit(self) -> None:
        """Leave as a person does."""
        ...


class Kind(Struct, frozen=True):
    """What differs between the hosts: how tools are called."""

    provider: str
    tool: Callable[..., Step]
    shell: Callable[[str], Step]


def _tool(name: str) -> Callable[..., Step]:
    def step(verb: str, **arguments: Any) -> Step:
        return Step(tool=name.format(verb), arguments=arguments)

    return step


def _shell(name: str, **also: Any) -> Callable[[str], Step]:
    def step(command: str) -> Step:
        return Step(tool=name, arguments={"command": command, **also})

    return step


GEMINI = Kind(
    "gemini", _tool("mcp_agentworks_agent_message_{}"), _shell("run_shell_command")
)
COPILOT = Kind(
    "copilot", _tool("agentworks-agent_message_{}"), _shell("bash", description="run")
)
QWEN = Kind(
    "qwen",
    _tool("mcp__agentworks__agent_message_{}"),
    _shell("run_shell_command", is_background=False),
)


class Talk:
    """One interactive chat that a test speaks to."""

    def __init__(self, kind: Kind, model: ModelServer, host: Chat) -> None:
        self.kind = kind
        self.model = model
        self.host = host

    @property
    def bodies(self) -> list[str]:
        """Every message that reached its model between whole fences, in order."""
        return bodies_in(self.model.turns())

    async def command(self, text: str, answer: str) -> None:
        """Type a command of ours; it is answered so and reaches no model."""
        assert answer not in self.host.pane.text(), "it would prove nothing"
        asked = len(self.model.turns())
        await self.host.type(text)
        await self.host.pane.wait_text(answer)
        assert len(self.model.turns()) == asked

    async def turn(
        self, prompt: str, *answers: Answer, requests: int = 1
    ) -> list[ModelRequest]:
        """Say something; the first so many requests to the model that follow.

        `answers` are what the model says first, in order.
        """
        known = len(self.model.turns())
        self.model.enqueue(*answers)
        await self.host.type(prompt)
        await wait_until(
            lambda: len(self.model.turns()) >= known + requests,
            f"{requests} requests of the turn {prompt!r}",
        )
        return self.model.turns()[known:]

    async def shell(self, command: str) -> str:
        """Have its model run a command in its shell; what the model reads of it."""
        _, result, *_ = await self.turn("run it", self.kind.shell(command), requests=2)
        return "\n".join(result.tool_results)

    async def call(self, verb: str, **arguments: Any) -> str:
        """Have its model use one of our tools; what the model reads of it."""
        step = self.kind.tool(verb, **arguments)
        _, result, *_ = await self.turn(f"please {verb}", step, requests=2)
        return "\n".join(result.tool_results)


async def attach(house: House, talk: Talk, name: str = "bob") -> None:
    """Attach it by typing, and let a first turn take the setup text."""
    await talk.command(f"/agentworks attach {name}", f"Attached as {name}")
    first, setup = await talk.turn("good morning", requests=2)
    assert not offers_in(first)
    assert offers_in(setup)
    await house.until_row(name, state="attached", route="hook", pending=0)
