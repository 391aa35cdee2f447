"""Installing into a project for Antigravity's CLI.

Owns our hooks in `.agents/hooks.json`, below our own name as agy wants it. Promises
strict JSON with whole seconds: agy drops a file that is not, without a word.
"""

from __future__ import annotations

from pathlib import Path

from bridge.providers import hook_file_install
from bridge.providers.project_file import Plan

HOOKS = ".agents/hooks.json"
_HOST = hook_file_install.Host(
    name="agy",
    file=HOOKS,
    notes=(
        "agy sees new hooks at its next start.",
        "agy has no tool server of ours: its agent uses `agentworks bridge message` in "
        "its shell. You attach it by asking its agent to run `agentworks attach NAME`.",
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
