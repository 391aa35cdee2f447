"""Probe hooks and a probe MCP server, installed and read by a test.

Owns a folder of notes that real clients' hooks leave, the acts that they are
to do next, and a Claude plugin around them. Says nothing about the product: its
own tests install the product's hooks instead.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.real_clients.rig.waiting import DEADLINE_S, wait_until

_HERE = Path(__file__).parent

# The interpreter below a virtual environment: no shim, no site packages.
PYTHON = str(getattr(sys, "_base_executable", sys.executable))

CLAUDE_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "Stop",
    "SessionEnd",
)

_SKILL = """\
---
name: agentworks
description: Attach this chat.
disable-model-invocation: true
---
THE SKILL BODY: the bridge did not catch this command; say so.
"""


class Note(Struct, frozen=True):
    """What one run of a probe hook saw; `ancestry` starts with the probe."""

    label: str
    stdin: dict[str, Any]
    environment: dict[str, str]
    folder: str
    ancestry: list[dict[str, Any]]


class Probe:
    """A folder of notes and acts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._acts = 0

    def command(self, label: str) -> str:
        """The shell line to install as a hook, of the shape that ours has."""
        return f"[ -x {PYTHON} ] || exit 0; exec {self.plain_command(label)}"

    def plain_command(self, label: str) -> str:
        """The probe as most hooks are written, without exec."""
        script = _HERE / "probe.py"
        parts = (PYTHON, "-I", "-S", str(script), str(self.folder), label)
        return shlex.join(parts)

    def mcp_command(self) -> list[str]:
        """Program and arguments of the probe MCP server."""
        return [PYTHON, "-I", "-S", str(_HERE / "probe_mcp.py"), str(self.folder)]

    def act(self, label: str, **act: Any) -> None:
        """Queue what the next run with this label does; see probe.py."""
        self._acts += 1
        path = self.folder / f"{label}.act.{self._acts:04d}.json"
        path.with_suffix(".new").write_text(json.dumps(act))
        path.with_suffix(".new").rename(path)

    def act_json(self, label: str, **answer: Any) -> None:
        """Queue a JSON answer on stdout."""
        self.act(label, stdout=json.dumps(answer))

    def notes(self, label: str) -> list[Note]:
        """What the runs with this label saw, oldest first."""
        found = sorted(self.folder.glob(f"{label}.*.note"))
        return [Note(**json.loads(path.read_text())) for path in found]

    async def wait_notes(
        self, label: str, count: int = 1, deadline_s: float = DEADLINE_S
    ) -> list[Note]:
        """Wait until this label ran `count` times or more."""
        return await wait_until(
            lambda: (
                self.notes(label)[: max(count, len(self.notes(label)))]
                if len(self.notes(label)) >= count
                else []
            ),
            f"{count} runs of the {label} hook",
            deadline_s,
        )

    def mcp_children(self) -> list[list[dict[str, Any]]]:
        """Per MCP child: its start, then the messages it received."""
        return [
            [json.loads(line) for line in path.read_text().splitlines()]
            for path in sorted(self.folder.glob("mcp.*.jsonl"))
        ]

    def hook(self, label: str, timeout_s: int = 10, **extra: Any) -> dict[str, Any]:
        """One hook group as Claude and Codex write it."""
        command = {"type": "command", "command": self.command(label)}
        return {**extra, "hooks": [{**command, "timeout": timeout_s}]}

    def write_claude_plugin(self, timeouts_s: dict[str, int] | None = None) -> Path:
        """A marketplace folder with our plugin: hooks, skill and MCP server."""
        plugin = self.folder / "market" / "plugins" / "agentworks"
        source = {"name": "agentworks", "source": "./plugins/agentworks"}
        named = {"name": "agentworks", "version": "0.0.1", "description": "Probe."}
        owner = {"name": "AgentWorks"}
        hooks = {
            event: [self.hook(event, (timeouts_s or {}).get(event, 10))]
            for event in CLAUDE_EVENTS
        }
        hooks["UserPromptExpansion"][0]["matcher"] = "agentworks|agentworks:agentworks"
        program, *arguments = self.mcp_command()
        server = {"command": program, "args": arguments}
        market = {"name": "agentworks", "owner": owner, "plugins": [source]}
        files = {
            "../../.claude-plugin/marketplace.json": market,
            ".claude-plugin/plugin.json": {**named, "author": owner},
            "hooks/hooks.json": {"hooks": hooks},
            ".mcp.json": {"mcpServers": {"messages": server}},
        }
        for name, content in files.items():
            _write(plugin / name, json.dumps(content))
        _write(plugin / "skills" / "agentworks" / "SKILL.md", _SKILL)
        return self.folder / "market"


def plugin_settings(market: Path) -> dict[str, Any]:
    """Settings that enable our plugin from a marketplace in a folder."""
    source = {"source": "directory", "path": str(market)}
    return {
        "extraKnownMarketplaces": {"agentworks": {"source": source}},
        "enabledPlugins": {"agentworks@agentworks": True},
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
