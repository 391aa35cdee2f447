"""Chats of hosts that are reached at the end of a turn, with the product in them.

Owns what the tests of Gemini CLI, Copilot CLI and Qwen Code share: a chat whose
turns are counted by what reaches its fake model. Promises that a turn is waited for
until it is over, its hooks included, by what its program shows; and that one request
more than expected is not overlooked: the next turn would begin with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tests.fakes.model_server import Answer, ModelRequest, ModelServer, Step
from tests.real_clients.house import House
from tests.real_clients.offers import (
    bodies_in,
    offers_in,
    times_remembered,
    times_seen,
)
from tests.real_clients.rig.terminal import Pane
from tests.real_clients.rig.waiting import wait_until

HELLO = "hello bob, <this> is alice"
UNSURE = "may not have reached you"
# What the programs show while a turn goes on.
_BUSY = ("esc to cancel", "esc interrupt")


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

    def __init__(
        self,
        kind: Kind,
        model: ModelServer,
        host: Chat,
        session_id: Callable[[], str],
    ) -> None:
        self.kind = kind
        self.model = model
        self.host = host
        self.session_id = session_id

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
        """Say something, to the end of the turn; its requests to the model.

        There are at least so many. `answers` are what the model says first, in order.
        """
        asked = await self.begin(prompt, *answers, requests=requests)
        await self.settle()
        return asked

    async def begin(
        self, prompt: str, *answers: Answer, requests: int = 1
    ) -> list[ModelRequest]:
        """The same, until its last expected request has reached the model."""
        known = len(self.model.turns())
        self.model.enqueue(*answers)
        await self.host.type(prompt)
        await wait_until(
            lambda: len(self.model.turns()) >= known + requests,
            f"{requests} requests of the turn {prompt!r}",
        )
        return self.model.turns()[known:]

    async def settle(self) -> None:
        """Until the last answer is on the screen and the program waits again."""

        def is_over() -> bool:
            answer, screen = self.model.turns()[-1].answer, self.host.pane.text()
            is_shown = answer is not None and not answer.tool and answer.say in screen
            return is_shown and not any(mark in screen for mark in _BUSY)

        await wait_until(is_over, "the end of the turn")

    async def hold(self, prompt: str, answer: Step, gate: str) -> None:
        """Say something whose first answer waits until the model releases the gate."""
        await self.begin(prompt, replace(answer, hold=gate, when=prompt))

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


def agentworks(house: House, words: str) -> str:
    """A shell line with our command by its path, as we print it."""
    return f"{house.computer.folder}/bin/agentworks {words}"


async def wish(house: House, talk: Talk, *options: str) -> None:
    """The person says in a terminal how mail is to come to bob from now on."""
    chosen = ("bob", "--session", talk.session_id(), "--yes", *options)
    await house.do("attach", *chosen)


# ---- what each of them must do ------------------------------------------------------


async def is_attached_by_typing(house: House, talk: Talk) -> None:
    """It costs no model call, and the model never reads of it."""
    await talk.command("/agentworks attach bob", "Attached as bob.")
    row = await house.row("bob")
    await talk.turn("hello", requests=2)

    kept = (row["state"], row["provider"], row["route"])
    assert kept == ("attached", talk.kind.provider, "hook")
    assert "attach bob" not in str([request.body for request in talk.model.requests])


async def gets_a_message_once(house: House, bob: Talk) -> None:
    """At a turn's end, in our fences, and the host's next sign confirms it."""
    alice = await house.script()
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)

    asked, brought = await bob.turn("what now", requests=2)
    await house.until_row("bob", pending=0)
    (later,) = await bob.turn("and now")

    (offer,) = offers_in(brought)
    assert not offers_in(asked)
    assert offer.bodies == (HELLO,)
    assert times_seen(bob.model.turns(), HELLO) == 1
    assert times_remembered(later, HELLO) == 1
    assert times_seen(bob.model.turns(), UNSURE) == 0


async def answers(house: House, bob: Talk) -> None:
    """With a tool of ours, and with our command in its shell."""
    alice = await house.script()
    await alice.mail()
    sent = await alice.send(HELLO)
    await house.until_row("bob", pending=1)
    await bob.turn("what now", requests=2)

    said = {"message_id": sent["message_id"], "submission_id": "reply-1"}
    replied = await bob.call("reply", message="with a tool", **said)
    assert "accepted" in replied
    assert "with a tool" in await alice.mail()

    words = f"bridge message reply --provider {bob.kind.provider} --message 'by hand' "
    words += f"--message-id {sent['message_id']} --submission-id reply-2"
    assert "Accepted as msg-" in await bob.shell(agentworks(house, words))
    assert "by hand" in await alice.mail()


async def gets_mail_with_a_prompt(house: House, bob: Talk) -> None:
    """Where its person wished that; mail that came while it was idle."""
    await wish(house, bob, "--at-prompt")
    alice = await house.script()
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)

    (request,) = await bob.turn("what now")
    await house.until_row("bob", pending=0)
    await bob.turn("and now")

    (offer,) = offers_in(request)
    assert "what now" in request.new_text
    assert len(offer.bodies) == 1
    assert len(bob.bodies) == 1
    assert times_seen(bob.model.turns(), UNSURE) == 0


async def gets_mail_after_a_tool(house: House, bob: Talk) -> None:
    """Where its person wished that; mail that came in the middle of a turn."""
    await wish(house, bob, "--mid-turn")
    alice = await house.script()
    known = len(bob.model.turns())
    await bob.hold("run it", bob.kind.shell("echo ran"), "sent")

    await alice.send("hello bob, in the middle")
    await house.until_row("bob", pending=1)
    bob.model.release("sent")
    await wait_until(lambda: len(bob.model.turns()) > known + 1, "the tool's result")
    await bob.settle()
    await bob.turn("and now")

    result, *_ = bob.model.turns()[known + 1 :]
    assert "ran" in result.arrived
    assert result.arrived.count("hello bob, in the middle") == 1
    everything = [request.arrived for request in bob.model.turns()]
    assert sum(each.count("hello bob, in the middle") for each in everything) == 1


async def goes_offline(house: House, bob: Talk) -> None:
    """When its program ends."""
    await bob.host.quit()
    await house.until_row("bob", state="offline")
