"""What installing writes, taken by the real programs; and what they themselves are.

The hook client is a stand-in that notes how it was called, so that these tests
tell a host that changed from a fault of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bridge.core.caller import HookCaller, Nobody, hook_caller
from bridge.providers import (
    claude_install,
    codex_install,
    discovery,
    process,
    project_file,
)
from tests.fakes.model_server import Step
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.computer import Computer
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

TEMPLATES = Path(__file__).resolve().parents[2] / "packaging" / "plugins"
# Notes its words and its environment, and stays until it is told to end.
ASK = """#!/bin/sh
cat > /dev/null
env > "$0.$3.$$.environment"
echo $$ > "$0.$3.$$.pid"
while [ -e "$0.$3.hold" ]; do sleep 0.02; done
"""


class Installed:
    """The state folder of a computer, with a stand-in for the hook client."""

    def __init__(self, computer: Computer) -> None:
        self.state = computer.folder / "state"
        self.state.mkdir(mode=0o700)
        (self.state / "bin").mkdir(mode=0o700)
        self.ask = self.state / "bin" / "ask"

    def place_client(self, held_event: str = "") -> None:
        """Put the stand-in there; hooks of `held_event` run until `release`."""
        self.ask.write_text(ASK)
        self.ask.chmod(0o700)
        if held_event:
            self._hold(held_event).touch()

    def release(self, event: str) -> None:
        """Let the hooks of this event end."""
        self._hold(event).unlink()

    def _hold(self, event: str) -> Path:
        return Path(f"{self.ask}.{event}.hold")

    async def held_hook(self, event: str, provider: str) -> HookCaller | Nobody:
        """Who the bridge would take a running hook of this event for."""
        await wait_until(lambda: self.pids(event), f"a {event} hook that is held")
        evidence = discovery.evidence_of(
            process.ancestry_of(self.pids(event)[0]),
            process.marks_of,
            lambda _: False,
        )
        return hook_caller(provider, evidence)

    def pids(self, event: str) -> list[int]:
        """The hooks of this event that were started."""
        paths = self.ask.parent.glob(f"ask.{event}.*.pid")
        return [int(text) for path in paths if (text := path.read_text().strip())]

    def events(self) -> set[str]:
        """The events that came."""
        return {path.name.split(".")[1] for path in self.ask.parent.glob("ask.*.pid")}

    def environment(self, event: str) -> Mapping[str, str]:
        """The environment of one hook of this event."""
        path = next(self.ask.parent.glob(f"ask.{event}.*.environment"))
        lines = path.read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


@pytest.fixture
def installed(computer: Computer) -> Installed:
    return Installed(computer)


def install_claude(computer: Computer, installed: Installed) -> None:
    plan = claude_install.plan(computer.project, installed.state, TEMPLATES)
    project_file.apply(plan)


def install_codex(computer: Computer, installed: Installed) -> None:
    plan = codex_install.plan(computer.project, installed.state, TEMPLATES)
    project_file.apply(plan)


# ---- Claude Code ---------------------------------------------------------------


async def test_claude_finds_nothing_wrong_with_the_package(
    claude: ClaudeRig, installed: Installed
) -> None:
    install_claude(claude.computer, installed)
    package = installed.state / "plugins" / "claude"

    for folder in (package, package / "plugins" / "agentworks"):
        done = await claude.computer.run(
            str(claude.program),
            "plugin",
            "validate",
            "--strict",
            str(folder),
            extra=claude.variables,
        )
        assert done.code == 0, done.out
        assert "Validation passed" in done.out


async def test_without_the_hook_client_a_typed_command_still_never_reaches_the_model(
    claude: ClaudeRig, installed: Installed
) -> None:
    install_claude(claude.computer, installed)
    stream = await claude.open_stream()

    for command in ("/agentworks attach bob", "/agentworks:agentworks detach"):
        blocked = await stream.ask(command)
        assert "agentworks up" in blocked["result"]
    assert claude.model.turns() == []


async def test_claude_runs_each_hook_as_a_child_of_its_own(
    claude: ClaudeRig, installed: Installed
) -> None:
    install_claude(claude.computer, installed)
    installed.place_client("SessionStart")
    stream = await claude.open_stream()
    stream.send("hello")

    found = await installed.held_hook("SessionStart", "claude")
    installed.release("SessionStart")
    await wait_until(lambda: "Stop" in installed.events(), "the end of the turn")

    assert isinstance(found, HookCaller)
    assert found.process.pid == stream.process.pid
    assert not found.is_nested
    assert {"SessionStart", "UserPromptSubmit", "Stop"} <= installed.events()
    assert "CLAUDE_CODE_EXECPATH" not in installed.environment("Stop")


async def test_a_hook_forged_in_claudes_shell_tool_is_none(
    claude: ClaudeRig, installed: Installed
) -> None:
    install_claude(claude.computer, installed)
    installed.place_client("Forged")
    claude.add_settings({"permissions": {"allow": ["Bash"]}})
    forged = {"command": f"exec {installed.ask} hook claude Forged </dev/null"}
    claude.model.enqueue(Step(tool="Bash", arguments=forged))
    stream = await claude.open_stream()
    stream.send("hello")

    found = await installed.held_hook("Forged", "claude")
    installed.release("Forged")

    assert isinstance(found, Nobody)
    assert "shell command" in found.reason


async def test_a_live_claude_chat_is_found_by_its_own_word(
    claude: ClaudeRig, installed: Installed
) -> None:
    install_claude(claude.computer, installed)
    installed.place_client()
    chat = await claude.open_chat()

    (found,) = discovery.live_sessions(
        [chat.process.pid], process.facts_of, process.marks_of
    )

    assert found.session_id == chat.session_id
    assert found.folder == str(claude.computer.project)
    assert found.version == "2.1.332"


# ---- Codex ---------------------------------------------------------------------


async def test_codex_runs_each_hook_as_a_child_of_its_own(
    codex: CodexRig, installed: Installed
) -> None:
    install_codex(codex.computer, installed)
    installed.place_client("SessionStart")
    chat = await codex.open_chat()
    await chat.type("hello")

    found = await installed.held_hook("SessionStart", "codex")
    installed.release("SessionStart")
    await chat.pane.wait_text("ok 1")
    await wait_until(lambda: "Stop" in installed.events(), "the end of the turn")

    assert isinstance(found, HookCaller)
    assert found.process.pid == chat.process.pid
    assert not found.is_nested
    assert {"SessionStart", "UserPromptSubmit", "Stop"} <= installed.events()
    assert "CODEX_THREAD_ID" not in installed.environment("Stop")


async def test_a_hook_forged_in_codexs_shell_tool_is_none(
    codex: CodexRig, installed: Installed
) -> None:
    install_codex(codex.computer, installed)
    installed.place_client("Forged")
    forged = {"cmd": f"exec {installed.ask} hook codex Forged </dev/null"}
    codex.model.enqueue(Step(tool="exec_command", arguments=forged))
    chat = await codex.open_chat("codex", "--dangerously-bypass-approvals-and-sandbox")
    await chat.type("hello")

    found = await installed.held_hook("Forged", "codex")
    installed.release("Forged")

    assert isinstance(found, Nobody)
    assert "shell command" in found.reason


async def test_codex_knows_our_tool_server_and_the_skill(
    codex: CodexRig, installed: Installed
) -> None:
    install_codex(codex.computer, installed)
    installed.place_client()
    listed = await codex.computer.run(
        str(codex.program), "mcp", "list", extra=codex.variables
    )
    await codex.run("hello")

    (request,) = codex.model.turns()
    assert str(installed.state / "bin" / "pipe") in listed.out
    assert "For the person only, never for you to start" in str(request.body)
