"""Installing for Qwen Code, into a project or the whole account.

Owns the settings and the command `/agentworks`. See settings_install for what is
promised. The command file makes the host take `/agentworks` for a command at all;
its text is the command as it was typed.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from bridge.providers import settings_install
from bridge.providers.project_file import Plan
from bridge.providers.scope import Scope

SETTINGS = ".qwen/settings.json"
COMMAND = ".qwen/commands/agentworks.md"
_START = (
    "Qwen Code reads hooks when it starts, and in a chat that is open when you "
    "type /hooks."
)
_TRUST = (
    "With its folder trust switched on, it runs a project's hooks only in a folder "
    "that you trust."
)
_NOTES = (
    "Qwen Code asks you before each message that an agent sends, and lets you "
    "allow it for good there.",
    "To let messages wake an idle chat, start it with --input-file and an empty "
    "file that only you can write to.",
)
_COMMITS = f"{SETTINGS} names files of this computer: keep it out of commits."
_HOST = settings_install.Host(
    name="qwen",
    settings=SETTINGS,
    files={COMMAND: "command.md"},
    has_mid_turn=True,
    notes=(f"{_START} {_TRUST}", *_NOTES, _COMMITS),
)
_HOSTS = {
    Scope.PROJECT: _HOST,
    Scope.ACCOUNT: structs.replace(_HOST, notes=(_START, *_NOTES)),
}


def plan(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What installing into this project would change; raises Refused."""
    return settings_install.plan(_HOSTS[scope], project, state_dir, templates_dir)


def removal(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What removing from this project would change; raises Refused."""
    return settings_install.removal(_HOSTS[scope], project, state_dir, templates_dir)
