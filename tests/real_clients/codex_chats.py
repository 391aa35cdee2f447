"""Codex chats with the product in them: installed, attached, spoken to.

Owns what the tests of the real Codex share: the person's approval of the tools, a
chat whose turns are counted by Codex's own record, and the messages as its model
gets them. Promises that a turn is over only when Codex wrote so.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.fakes.model_server import Answer, ModelRequest, Step
from tests.real_clients.house import House
from tests.real_clients.offers import bodies_in, offers_in
from tests.real_clients.rig.codex import CodexChat, CodexRig
from tests.real_clients.rig.waiting import DEADLINE_S, wait_until

NO_SANDBOX = "--dangerously-bypass-approvals-and-sandbox"
ATTACH = " /agentworks attach {name}"
_TABLE = "[mcp_servers.agentworks]\n"
_APPROVAL = 'default_tools_approval_mode = "approve"\n'


class Talk:
    """One interactive Codex that a test speaks to."""

    def __init__(self, codex: CodexRig, host: CodexChat, others: set[Path]) -> None:
        self.codex = codex
        self.host = host
        self._others = others

    @property
    def _record(self) -> Path | None:
        """Codex's own record of the thread; none before its first prompt."""
        # Its subagents' records have later names.
        return min(records(self.codex) - self._others, default=None)

    @property
    def thread_id(self) -> str:
        """The thread of this chat, from its first prompt on."""
        assert self._record is not None, "nothing was typed yet"
        return next(_lines(self._record))["payload"]["id"]  # type: ignore[no-any-return]

    @property
    def turns_ended(self) -> int:
        """How many turns are over, their hooks included."""
        return 0 if self._record is None else _turns_ended(self._record)

    @property
    def is_idle(self) -> bool:
        """Whether every turn that was begun is over, the hooks included."""
        record = self._record
        return record is None or _count(record, "task_started") == _turns_ended(record)

    @property
    def subagents_ended(self) -> int:
        """How many turns of its subagents are over."""
        later = records(self.codex) - self._others - {self._record}
        return sum(map(_turns_ended, later))

    @property
    def requests(self) -> list[ModelRequest]:
        """All that this thread asked the model, oldest first."""
        record = self._record
        return [] if record is None else self.codex.model.turns(self.thread_id)

    @property
    def bodies(self) -> list[str]:
        """Every message that reached its model between whole fences, in order."""
        return bodies_in(self.requests)

    async def command(self, text: str, answer: str) -> None:
        """Type a command of ours; `answer` is what it must be answered with."""
        assert answer not in self.host.pane.text(), "it would prove nothing"
        async with self.turning(text):
            await self.host.pane.wait_text(answer)

    async def turn(self, prompt: str, *answers: Answer) -> list[ModelRequest]:
        """Say something, to the very end of the turn; its requests to the model.

        `answers` are what the model says first, in order.
        """
        known = len(self.requests)
        self.codex.model.enqueue(*answers)
        async with self.turning(prompt):
            pass
        return self.requests[known:]

    @asynccontextmanager
    async def turning(self, prompt: str) -> AsyncIterator[None]:
        """Say something, do what is in the block, and wait for the turn's end."""
        ended = self.turns_ended
        await self.host.type(prompt)
        yield
        await wait_until(
            lambda: self.turns_ended > ended, f"the end of the turn {prompt!r}"
        )

    async def until_tools(self) -> None:
        """Go on until its model is shown our tools, which Codex loads meanwhile."""
        with trio.fail_after(DEADLINE_S):
            while True:
                asked, *_ = await self.turn("are you ready?")
                if "agent_message_reply" in asked.tool_names:
                    return

    async def call(self, verb: str, **arguments: object) -> str:
        """Have its model use one of our tools; what the model reads of it."""
        await self.until_tools()
        _, result, *_ = await self.turn(f"please {verb}", tool(verb, **arguments))
        return "\n".join(result.tool_results)

    async def shell(self, command: str) -> str:
        """Have its model run a command in its shell; what the model reads of it."""
        _, result, *_ = await self.turn("run it", shell(command))
        return "\n".join(result.tool_results)


def tool(verb: str, **arguments: object) -> Step:
    """The model uses one of our tools."""
    return Step(tool=f"agent_message_{verb}", arguments=arguments)


def shell(command: str) -> Step:
    """The model runs a command in its shell."""
    return Step(tool="exec_command", arguments={"cmd": command})


async def install(house: House) -> None:
    """Set the project up for Codex, as the person does it, tools approved."""
    await house.install("codex")
    approve_tools(house)


def agentworks(house: House, words: str) -> str:
    """A shell line with our command by its path, as we print it."""
    return f"{house.computer.folder}/bin/agentworks {words}"


def approve_tools(house: House) -> None:
    """Add the one line that the installer tells the person about."""
    config = house.computer.project / ".codex" / "config.toml"
    text = config.read_text()
    assert _TABLE in text
    config.write_text(text.replace(_TABLE, _TABLE + _APPROVAL))


async def open_talk(
    codex: CodexRig, name: str = "codex", *arguments: str, **how: Any
) -> Talk:
    """A new chat; see CodexRig.open_chat."""
    others = records(codex)
    return Talk(codex, await codex.open_chat(name, *arguments, **how), others)


async def resume_talk(codex: CodexRig, name: str, thread_id: str) -> Talk:
    """A chat that goes on with a thread in a new process."""
    others = {path for path in records(codex) if thread_id not in path.name}
    return Talk(codex, await codex.open_chat(name, "resume", thread_id), others)


async def attach(house: House, talk: Talk, name: str = "carol") -> None:
    """Attach it by typing, and let a first turn take the setup text."""
    await talk.command(ATTACH.format(name=name), f"Attached as {name}")
    first, setup = await talk.turn("good morning")
    assert not offers_in(first)
    assert offers_in(setup)
    await house.until_row(name, state="attached", route="hook", pending=0)


def records(codex: CodexRig) -> set[Path]:
    """Codex's own records of its threads."""
    return set((codex.codex_home / "sessions").rglob("rollout-*.jsonl"))


def _turns_ended(record: Path) -> int:
    return _count(record, "task_complete")


def _count(record: Path, kind: str) -> int:
    return [line["payload"].get("type") for line in _lines(record)].count(kind)


def _lines(record: Path) -> Iterator[dict[str, Any]]:
    for line in record.read_text().splitlines():
        # Race: the last line may be half written.
        if line.endswith("}"):
            yield json.loads(line)
