"""Installing into a project for Qwen Code: settings and the command `/agentworks`.

See settings_install for what is promised. The command file makes the host take
`/agentworks` for a command at all; its text is the command as it was typed.
"""

from __future__ import annotations

from pathlib import Path

from bridge.providers import settings_install
from bridge.providers.project_file import Plan

SETTINGS = ".qwen/settings.json"
COMMAND = ".qwen/commands/agentworks.md"
_HOST = settings_install.Host(
    name="qwen",
    settings=SETTINGS,
    files={COMMAND: "command.md"},
    has_mid_turn=True,
    notes=(
        "Qwen Code reads hooks when it starts, and in a chat that is open when you "
        "type /hooks. With its folder trust switched on, it runs a project's hooks "
        "only in a folder that you trust.",
        "Qwen Code asks you before each message that an agent sends, and lets you "
        "allow it for good there.",
        "To let messages wake an idle chat, start it with --input-file and an empty "
        "file that only you can write to.",
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
