"""Installing into a project for Muse Code.

Owns our hook groups in `.muse/hooks.json`. Promises nothing in them but what Muse
knows: one key more and it drops the group, a wrong type and it drops the file, both
without a word. Its tool servers stand in the person's own settings, which are not
touched.
"""

from __future__ import annotations

from pathlib import Path

from bridge.providers import hook_file_install
from bridge.providers.project_file import Plan

HOOKS = ".muse/hooks.json"
_HOST = hook_file_install.Host(
    name="muse",
    file=HOOKS,
    notes=(
        "Muse runs a project's hooks only in a folder that you trust; elsewhere it "
        "leaves them out without a word.",
        "An idle Muse chat wakes for a message while its own monitor tool runs "
        "`agentworks monitor --session ID`: ask its agent to start that.",
        "Muse has no tool server of ours: its agent uses `agentworks bridge message` "
        "in its shell.",
        f"{HOOKS} names files of this computer: keep it out of commits.",
    ),
)


def plan(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What installing into this project would change; raises Refused."""
    return hook_file_install.plan(_HOST, project, state_dir, templates_dir)


def removal(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What removing from this project would change; raises Refused."""
    return hook_file_install.removal(_HOST, project, state_dir, templates_dir)


def is_installed(project: Path, state_dir: Path, templates_dir: Path) -> bool:
    """Would installing change nothing in this project? Raises Refused as `plan`."""
    return not plan(project, state_dir, templates_dir).changes
