"""Claude Code chats with the product in them: attached, spoken to, looked at.

Owns what the tests of the real Claude Code share: both ways of running it under
one name, and the product's tools as its model calls them. Promises that a turn is
over only when Claude Code itself has ended it, its Stop hooks included.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.fakes.model_server import ModelRequest
from tests.real_clients.house import House
from tests.real_clients.offers import Offer, bodies_in, offers_in, times_seen
from tests.real_clients.rig.claude import ClaudeChat, ClaudeRig, ClaudeStream
from tests.real_clients.rig.processes import ProcessRow
from tests.real_clients.rig.waiting import wait_until

TOOLS = tuple(
    f"agent_message_{verb}"
    for verb in ("send", "reply", "read", "ack", "peers", "set_purpose", "status")
)


BOTH = pytest.mark.parametrize("kind", ["chat", "stream"])
CHAT = pytest.mark.parametrize("kind", ["chat"])
STREAM = pytest.mark.parametrize("kind", ["stream"])
_CONNECTED = (
    'MCP server "plugin:agentworks:messages": Connection established with capabilities'
)
_ONLY_ITS_OWN = "Found 3 plugins (3 enabled, 0 disabled)"


class Talk:
    """One Claude Code that a test speaks to, in a terminal or as a stream."""

    def __init__(self, claude: ClaudeRig, host: ClaudeChat | ClaudeStream) -> None:
        self._claude = claude
        self.host = host

    @property
    def process(self) -> ProcessRow:
        """Claude Code's own process."""
        return self.host.process

    @property
    def session_id(self) -> str:
        """The session that it has open now."""
        return self.host.session_id

    @property
    def chat(self) -> ClaudeChat:
        """The chat in a terminal, for what only that has."""
        assert isinstance(self.host, ClaudeChat)
        return self.host

    async def command(self, text: str, answer: str) -> None:
        """Type a command of ours; `answer` is what it must be answered with."""
        if isinstance(self.host, ClaudeStream):
            result = str((await self.host.ask(text))["result"])
            assert answer in result
            return
        assert answer not in self.host.pane.text(), "it would prove nothing"
        await self.host.ask(text, answer)

    async def turn(self, prompt: str) -> list[ModelRequest]:
        """Say something, to the very end of the turn; its requests to the model."""
        known = len(self._claude.model.turns())
        async with self.turning(prompt):
            pass
        return self._claude.model.turns()[known:]

    @asynccontextmanager
    async def turning(self, prompt: str) -> AsyncIterator[None]:
        """Say something, do what is in the block, and wait for the turn's end."""
        before = self.turns_ended()
        if isinstance(self.host, ClaudeStream):
            self.host.send(prompt)
        else:
            await self.host.type(prompt)
        yield
        await wait_until(
            lambda: self.turns_ended() > before, f"the end of the turn {prompt!r}"
        )
        if isinstance(self.host, ClaudeChat):
            await self.host.wait_idle()

    def shown(self) -> str:
        """All that the person, or the program around a stream, has been shown."""
        if isinstance(self.host, ClaudeStream):
            return str(self.host.records())
        return self.host.pane.text(history=True)

    async def leave(self) -> None:
        """End it as its person does."""
        if isinstance(self.host, ClaudeStream):
            await self.host.close()
        else:
            await self.host.quit()

    def turns_ended(self) -> int:
        """How many of its turns are over, their Stop hooks included."""
        if isinstance(self.host, ClaudeStream):
            return len(self.host.records("result"))
        return self.host.turns_ended


def tool(name: str) -> str:
    """A messaging tool as Claude's model calls it."""
    return f"mcp__plugin_agentworks_messages__agent_message_{name}"


def allow_tools(claude: ClaudeRig) -> None:
    """Answer beforehand what Claude would ask the person about tools and shell."""
    ours = [f"mcp__plugin_agentworks_messages__{name}" for name in TOOLS]
    claude.add_settings({"permissions": {"allow": [*ours, "Bash"]}})


async def open_talk(
    claude: ClaudeRig, kind: str, *arguments: str, name: str = ""
) -> Talk:
    """A new Claude Code of this kind, `chat` or `stream`, with our tools in it."""
    talk = await _opened(claude, kind, *arguments, name=name or kind)
    if not await has_our_plugin(talk):
        await talk.leave()
        talk = await _opened(claude, kind, *arguments, name=f"{name or kind}-second")
    await tools_connected(talk)
    return talk


async def _opened(claude: ClaudeRig, kind: str, *arguments: str, name: str) -> Talk:
    if kind == "stream":
        return Talk(claude, await claude.open_stream(name, *arguments))
    return Talk(claude, await claude.open_chat(name, *arguments))


async def has_our_plugin(talk: Talk) -> bool:
    """False for the start in a few hundred that read no settings of the project.

    Claude Code 2.1.332 does that now and then in a home that it never ran in: it
    finds its own three plugins and considers no other. Its person starts it again.
    """
    words = await wait_until(
        lambda: [word for word in (_CONNECTED, _ONLY_ITS_OWN) if word in _log(talk)],
        "our tools connected, or our plugin not looked at",
    )
    return _CONNECTED in words


async def tools_connected(talk: Talk) -> None:
    """Wait until Claude Code has greeted our MCP child."""
    await wait_until(lambda: _CONNECTED in _log(talk), "our tools connected")


def _log(talk: Talk) -> str:
    log = talk.host.debug_log
    return log.read_text(errors="replace") if log.exists() else ""


async def attach_waking(
    claude: ClaudeRig, house: House, talk: Talk, name: str = "bob"
) -> None:
    """Attach a chat by typing; its setup text starts a turn at once."""
    await talk.command(f"/agentworks attach {name}", f"Attached as {name}")
    await wait_until(
        lambda: [each for each in claude.model.turns() if offers_in(each)],
        "the setup text at the model",
    )
    await idle(claude, talk)
    await house.until_row(name, state="attached", pending=0)


async def idle(claude: ClaudeRig, talk: Talk, after: int = -1) -> None:
    """Until it says that it waits for a prompt, and more than `after` turns are over.

    It says "busy" a moment after its first request, so its word alone may be old.
    """
    pid = talk.process.pid
    await wait_until(lambda: talk.turns_ended() > after, "the end of a turn")
    await wait_until(
        lambda: claude.registration(pid).get("status") == "idle", "an idle chat"
    )


async def attach(house: House, talk: Talk, name: str = "bob") -> None:
    """Attach it by typing, and let a first turn take the setup text."""
    await talk.command(f"/agentworks attach {name}", f"Attached as {name}")
    first, setup = await talk.turn("good morning")
    assert not offers_in(first)
    assert offers_in(setup)
    await house.until_row(name, state="attached", route="hook", pending=0)


def in_subagent(request: ModelRequest, task: str) -> bool:
    """Whether a request belongs to the subagent that was given this task."""
    return task in str(request.body["messages"][0])


def offers(claude: ClaudeRig) -> list[Offer]:
    """Every offer that reached the model as something new, in order."""
    return [offer for each in claude.model.turns() for offer in offers_in(each)]


def bodies(claude: ClaudeRig) -> list[str]:
    """Every message that reached the model between whole fences, in order."""
    return bodies_in(claude.model.turns())


def seen(claude: ClaudeRig, text: str) -> int:
    """How often the model was handed a text as new, in fences or not."""
    return times_seen(claude.model.turns(), text)
