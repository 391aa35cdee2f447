"""Installing into a project for Gemini CLI: settings and the command `/agentworks`.

See settings_install for what is promised. The command's text is the command as it
was typed. The host would pass an unknown one on as it is, but takes it for a skill
where one has that name, as Codex's does.
"""

from __future__ import annotations

from pathlib import Path

from bridge.providers import settings_install
from bridge.providers.project_file import Plan

SETTINGS = ".gemini/settings.json"
COMMAND = ".gemini/commands/agentworks.toml"
_HOST = settings_install.Host(
    name="gemini",
    settings=SETTINGS,
    files={COMMAND: "command.toml"},
    notes=(
        "Gemini CLI names a project's hooks when it starts the next time. With its "
        "folder trust switched on, it runs them only in a folder that you trust.",
        "Gemini CLI asks you before each message that an agent sends, and lets you "
        "allow it for good there.",
        f"{SETTINGS} names files of this computer: keep it out of commits.",
    ),
)


def plan(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What installing into this project would change; raises Refused."""
    return settings_install.plan(_HOST, project, state_dir, templates_dir)


def removal(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What removing from this project would change; raises Refused."""
    return settings_install.removal(_HOST, project, state_dir, templates_dir)


def is_installed(project: Path, state_dir: Path, templates_dir: Path) -> bool:
    """Would installing change nothing in this project? Raises Refused as `plan`."""
    return not plan(project, state_dir, templates_dir).changes
