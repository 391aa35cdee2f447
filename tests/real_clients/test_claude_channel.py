"""Claude Code with our channel: it starts, attaches what is configured, and works.

The vendor has channels switched off here, and says so; what it would be sent is
looked at in tests/journeys/test_claude_channel.py.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from tests.real_clients.claude_chats import allow_tools, seen
from tests.real_clients.house import House
from tests.real_clients.rig.claude import ClaudeChat, ClaudeRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow, pytest.mark.waking]

FLAG = "--dangerously-load-development-channels"
SKIPPED = "Channel notifications skipped"
OFF = "Channels are not currently available"


async def log_has(log: Path, words: str) -> str:
    """The line of Claude Code's own log that says so."""

    def look() -> str:
        text = log.read_text(errors="replace") if log.exists() else ""
        return next((line for line in text.splitlines() if words in line), "")

    return await wait_until(look, f"{words!r} in its log")


async def notices(chat: ClaudeChat) -> str:
    """What Claude Code tells its person at the start, all of it."""
    await chat.pane.wait_text("ctrl+o to expand")
    chat.pane.press("C-o")
    await chat.pane.wait_text("Channels")
    return chat.pane.text(history=True)


async def test_agentworks_claude_starts_it_with_its_channel_and_says_so(
    claude: ClaudeRig, house: House
) -> None:
    await house.install("claude")
    allow_tools(claude)
    environment = claude.computer.environment
    environment["PATH"] = f"{claude.program.parent}:{environment['PATH']}"
    log = claude.computer.record("chat").with_suffix(".debug")
    words = ["--permission-mode", "default", "--debug-file", str(log)]
    command = ["agentworks", "claude", "--", *words]
    pane = claude.computer.open_terminal("chat", command, claude.variables)
    chat = ClaudeChat(claude, pane, log)
    await chat.wait_idle()

    skipped = await log_has(log, SKIPPED)
    assert "plugin:agentworks:messages" in skipped
    assert OFF in await notices(chat)
    assert f"{FLAG} ignored (plugin:agentworks@agentworks)" in chat.pane.text()
    chat.pane.press("C-o")
    await chat.ask("good morning", "ok 1")


async def test_the_configuration_attaches_the_chat_and_it_is_written_to(
    claude: ClaudeRig, house: House
) -> None:
    session_id = str(uuid.uuid4())
    config = claude.computer.home / "reviewer.json"
    config.touch(0o600)
    config.write_text("{}")
    words = ["--config", str(config), "mcp", "serve", "--claude-channel"]
    words += ["--agent", "reviewer", "--purpose", "Review incoming work"]
    words += ["--native-session-id", session_id]
    server = {"agentworks-live": {"command": "agentworks", "args": words}}
    (claude.computer.project / ".mcp.json").write_text(
        json.dumps({"mcpServers": server})
    )
    claude.add_settings({"enabledMcpjsonServers": ["agentworks-live"]})
    flags = ["--session-id", session_id, FLAG, "server:agentworks-live"]
    chat = await claude.open_chat("chat", *flags)

    row = await house.until_row("reviewer", state="attached")
    skipped = await log_has(chat.debug_log, SKIPPED)
    alice = await house.script()
    await alice.send("Is the parser done?", to="reviewer")
    await wait_until(lambda: seen(claude, "Is the parser done?"), "it at the model")

    assert row["purpose"] == "Review incoming work"
    assert "agentworks-live" in skipped
    await chat.wait_idle()
    assert seen(claude, "Is the parser done?") == 1
