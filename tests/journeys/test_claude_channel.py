"""The channel on the wire: a Claude Code of our own making, the pipe, the bridge.

The vendor switches channels on from afar, so no real Claude Code shows a pushed
message offline. What it would be sent is looked at here, where its host ends.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from bridge.providers import process as process_of
from tests.hooks.conftest import HOOKS, with_first_line
from tests.hooks.host import INITIALIZE, INITIALIZED, LIST_CHANGED, Host
from tests.journeys.rig.canary import BODY
from tests.journeys.rig.computer import Computer
from tests.journeys.rig.waiting import until_some

SESSION = "8c6f52a4-6a2c-4a3e-9f0e-3d9b0c6f1a55"
CHANNEL = "notifications/claude/channel"
# Its program is a shell, which tells of its chat as Claude Code's hooks do and
# then is the host of whatever follows.
_HOST = """\
shift 2
printf '%s' "$1" | "$2" hook claude SessionStart
shift 2
"$@"
:
"""
TAKES_IT = ("--dangerously-load-development-channels", "server:agentworks-live")
TAKES_NONE = ("--model", "any")


def configured(session_id: str = SESSION) -> list[str]:
    """The server's command as a person writes it into Claude Code's settings."""
    words = ["mcp", "serve", "--claude-channel", "--agent", "reviewer"]
    words += ["--purpose", "Review incoming work", "--native-session-id", session_id]
    return [sys.executable, "-P", "-m", "bridge", *words]


class Claude(Host):
    """The host, and what its child told it unasked."""

    def __init__(self, process: trio.Process) -> None:
        super().__init__(process)
        self.pushed: list[dict[str, Any]] = []
        self._number = 0

    async def hear_answer(self) -> dict[str, Any]:
        """The next line that is an answer; what was pushed before it is kept."""
        while True:
            said: dict[str, Any] = await self.hear()
            if "id" in said:
                return said
            if said != LIST_CHANGED:
                self.pushed.append(said)

    async def greet(self) -> dict[str, Any]:
        """The handshake; what the child can do."""
        await self.say(INITIALIZE)
        capabilities: dict[str, Any] = (await self.hear_answer())["result"][
            "capabilities"
        ]
        await self.say(INITIALIZED)
        return capabilities

    async def call(self, name: str, **arguments: object) -> dict[str, Any]:
        """One tool; its answer, or the sentence of its refusal."""
        self._number += 1
        params = {"name": f"agent_message_{name}", "arguments": arguments}
        asked = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call"}
        await self.say(json.dumps({**asked, "params": params}).encode())
        (content,) = (await self.hear_answer())["result"]["content"]
        text = content["text"]
        found: dict[str, Any] = json.loads(text) if text[0] == "{" else {"no": text}
        return found

    async def until_attached(self) -> dict[str, Any]:
        """Ask for the chat's state until it has one."""

        async def look() -> dict[str, Any]:
            said = await self.call("status")
            return {} if "no" in said else said

        return await until_some(look, "the attachment")

    async def until_pushed(self, count: int) -> list[dict[str, Any]]:
        """Listen until so much was pushed in all."""
        with trio.fail_after(20):
            while len(self.pushed) < count:
                said = await self.hear()
                if said != LIST_CHANGED:
                    self.pushed.append(said)
        return self.pushed


def register(computer: Computer, pid: int) -> None:
    """Its own word for the chat it has open; it has no inbox, as 2.1.197 has none."""
    facts = process_of.facts_of(pid)
    assert facts is not None
    said = {"pid": pid, "sessionId": SESSION, "procStart": str(facts.start)}
    said |= {"version": "2.1.197", "cwd": str(computer.home)}
    folder = computer.home / ".claude" / "sessions"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / f"{pid}.json").write_text(json.dumps(said))


@asynccontextmanager
async def claude_on(
    computer: Computer, command: list[str], flags: tuple[str, str] = TAKES_IT
) -> AsyncIterator[Claude]:
    """A program that is Claude Code by its name, with this child."""
    folder = computer.home / "programs"
    folder.mkdir(exist_ok=True)
    program = folder / "claude"
    if not program.exists():
        shutil.copy(Path("/bin/sh").resolve(), program)
    started = {"session_id": SESSION, "hook_event_name": "SessionStart"}
    started |= {"source": "startup", "cwd": str(computer.home)}
    ask = str(computer.paths.bin / "ask")
    words = ["-c", _HOST, "claude", *flags, json.dumps(started), ask, *command]
    process = await trio.lowlevel.open_process(
        [str(program), *words],
        stdin=-1,
        stdout=-1,
        env=computer.environment,
    )
    register(computer, process.pid)
    host = Claude(process)
    try:
        yield host
    finally:
        await host.stdin.aclose()
        with trio.move_on_after(5):
            await process.wait()
        process.kill()
        await process.wait()
        await host.stdout.aclose()


async def test_each_message_is_pushed_once_with_the_ids_to_answer_it_by(
    computer: Computer,
) -> None:
    await computer.start_bridge()
    alice = await computer.settled("alice")
    async with claude_on(computer, configured()) as host:
        capabilities = await host.greet()
        status = await host.until_attached()
        (setup,) = await host.until_pushed(1)
        first = await alice.send("reviewer", "Is the parser done?")
        _, pushed = await host.until_pushed(2)
        meta = pushed["params"]["meta"]
        for delivery in ("admitted", "processed"):
            await host.call("ack", message_id=meta["message_id"], delivery=delivery)
        second = await alice.send("reviewer", "And its tests?")
        *_, last = await host.until_pushed(3)
        await host.call("status")

    assert capabilities["experimental"] == {"claude/channel": {}}
    assert status["name"] == "reviewer"
    assert status["purpose"] == "Review incoming work"
    assert [each["method"] for each in host.pushed] == [CHANNEL] * 3
    assert setup["params"]["meta"] == {}
    assert meta == {
        "message_id": first["message_id"],
        "sender": "alice",
        "inbox_id": first["inbox_id"],
    }
    assert pushed["params"]["content"].count("Is the parser done?") == 1
    assert pushed["params"]["content"].count(BODY) == 1
    assert last["params"]["meta"]["message_id"] == second["message_id"]


async def test_a_second_message_waits_for_an_answer_to_the_first(
    computer: Computer,
) -> None:
    """Nobody can say whether the host takes what is pushed."""
    await computer.start_bridge()
    alice = await computer.settled("alice")
    async with claude_on(computer, configured()) as host:
        await host.greet()
        await host.until_attached()
        await host.until_pushed(1)
        first = await alice.send("reviewer", "first")
        await host.until_pushed(2)
        await alice.send("reviewer", "second")
        await computer.until_row("reviewer", pending=1, route="hook")
        await host.call("status")
        assert len(host.pushed) == 2

        await host.call("ack", message_id=first["message_id"], delivery="admitted")
        *_, last = await host.until_pushed(3)

    assert "second" in last["params"]["content"]


async def test_a_bridge_that_is_restarted_repeats_nothing_and_goes_on(
    computer: Computer,
) -> None:
    bridge = await computer.start_bridge()
    alice = await computer.settled("alice")
    async with claude_on(computer, configured()) as host:
        await host.greet()
        await host.until_attached()
        await host.until_pushed(1)
        first = await alice.send("reviewer", "first")
        await host.until_pushed(2)
        await host.call("ack", message_id=first["message_id"], delivery="admitted")
        await bridge.kill()
        await computer.start_bridge()
        second = await alice.send("reviewer", "second")
        *_, last = await host.until_pushed(3)

    assert last["params"]["meta"]["message_id"] == second["message_id"]


async def test_a_host_that_was_not_started_to_take_it_is_pushed_nothing(
    computer: Computer,
) -> None:
    await computer.start_bridge()
    alice = await computer.settled("alice")
    async with claude_on(computer, configured(), TAKES_NONE) as host:
        capabilities = await host.greet()
        await host.until_attached()
        await alice.send("reviewer", "Is the parser done?")
        await computer.until_row("reviewer", pending=1, route="hook")
        await host.call("status")

    assert not capabilities.get("experimental")
    assert host.pushed == []


async def test_a_configuration_for_another_chat_attaches_none(
    computer: Computer,
) -> None:
    await computer.start_bridge()
    other = "00000000-0000-4000-8000-000000000000"
    async with claude_on(computer, configured(other)) as host:
        await host.greet()
        refused = await host.call("status")

    assert "not attached" in refused["no"]
    assert await computer.row("reviewer") is None
    assert host.pushed == []


async def test_a_configuration_takes_no_name_from_another_chat(
    computer: Computer,
) -> None:
    await computer.start_bridge()
    await computer.settled("reviewer")
    async with claude_on(computer, configured()) as host:
        await host.greet()
        refused = await host.call("status")

    assert "not attached" in refused["no"]
    row = await computer.row("reviewer")
    assert row is not None
    assert row["provider"] == "script"


async def test_only_a_coding_agents_program_may_start_it(computer: Computer) -> None:
    await computer.start_bridge()
    person = await computer.agent()
    words = [sys.executable, "-P", "-m", "bridge", "mcp", "serve"]
    variables = [f"{name}={value}" for name, value in computer.environment.items()]
    command = ["/usr/bin/env", *variables, *words]
    done = await person.process.do("run", command=command)

    assert done["exit"] == 2


async def test_a_bridge_that_starts_a_moment_later_attaches_the_chat_as_well(
    computer: Computer,
) -> None:
    computer.install()
    with_first_line(HOOKS / "pipe.py", computer.paths.bin / "pipe")
    async with claude_on(computer, configured()) as host:
        await computer.start_bridge()
        await host.greet()
        status = await host.until_attached()

    assert status["name"] == "reviewer"
