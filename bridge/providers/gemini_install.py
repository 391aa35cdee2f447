"""Installing for Gemini CLI, into a project or the whole account.

Owns the settings and the command `/agentworks`. See settings_install for what is
promised. The command's text is the command as it was typed. The host would pass an
unknown one on as it is, but takes it for a skill where one has that name, as Codex's
does.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from bridge.providers import settings_install
from bridge.providers.project_file import Plan
from bridge.providers.scope import Scope

SETTINGS = ".gemini/settings.json"
COMMAND = ".gemini/commands/agentworks.toml"
_START = "Gemini CLI reads new hooks when it starts the next time."
_TRUST = (
    "Gemini CLI names a project's hooks when it starts the next time. With its "
    "folder trust switched on, it runs them only in a folder that you trust."
)
_APPROVAL = (
    "Gemini CLI asks you before each message that an agent sends, and lets you "
    "allow it for good there."
)
_COMMITS = f"{SETTINGS} names files of this computer: keep it out of commits."
_HOST = settings_install.Host(
    name="gemini",
    settings=SETTINGS,
    files={COMMAND: "command.toml"},
    notes=(_TRUST, _APPROVAL, _COMMITS),
)
_HOSTS = {
    Scope.PROJECT: _HOST,
    Scope.ACCOUNT: structs.replace(_HOST, notes=(_START, _APPROVAL)),
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
