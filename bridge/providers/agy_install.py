"""Installing for Antigravity's CLI, into a project or the whole account.

Owns our hooks in `.agents/hooks.json`, below our own name as agy wants it. Promises
strict JSON with whole seconds: agy drops a file that is not, without a word.
"""

from __future__ import annotations

from pathlib import Path

from bridge.providers import hook_file_install
from bridge.providers.project_file import Plan
from bridge.providers.scope import Scope

HOOKS = ".agents/hooks.json"
ACCOUNT_HOOKS = ".gemini/config/hooks.json"
_NOTES = (
    "agy sees new hooks at its next start.",
    "agy has no tool server of ours: its agent uses `agentworks bridge message` in "
    "its shell. You attach it by asking its agent to run `agentworks attach NAME`.",
)
_COMMITS = f"{HOOKS} names files of this computer: keep it out of commits."
_HOSTS = {
    Scope.PROJECT: hook_file_install.Host("agy", HOOKS, (*_NOTES, _COMMITS)),
    Scope.ACCOUNT: hook_file_install.Host("agy", ACCOUNT_HOOKS, _NOTES),
}


def plan(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What installing into this project would change; raises Refused."""
    return hook_file_install.plan(_HOSTS[scope], project, state_dir, templates_dir)


def removal(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What removing from this project would change; raises Refused."""
    return hook_file_install.removal(_HOSTS[scope], project, state_dir, templates_dir)
