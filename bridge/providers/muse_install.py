"""Installing for Muse Code, into a project or the whole account.

Owns our hook groups in `.muse/hooks.json`. Promises nothing in them but what Muse
knows: one key more and it drops the group, a wrong type and it drops the file, both
without a word. Its tool servers stand in the person's own settings, which are not
touched.
"""

from __future__ import annotations

from pathlib import Path

from bridge.providers import hook_file_install
from bridge.providers.project_file import Plan
from bridge.providers.scope import Scope

HOOKS = ".muse/hooks.json"
ACCOUNT_SETTINGS = ".config/muse/settings.json"
_TRUST = (
    "Muse runs a project's hooks only in a folder that you trust; elsewhere it "
    "leaves them out without a word."
)
_NOTES = (
    "An idle Muse chat wakes for a message while its own monitor tool runs "
    "`agentworks monitor --session ID`: ask its agent to start that.",
    "Muse has no tool server of ours: its agent uses `agentworks bridge message` "
    "in its shell.",
)
_COMMITS = f"{HOOKS} names files of this computer: keep it out of commits."
_HOSTS = {
    Scope.PROJECT: hook_file_install.Host("muse", HOOKS, (_TRUST, *_NOTES, _COMMITS)),
    Scope.ACCOUNT: hook_file_install.Host(
        "muse", ACCOUNT_SETTINGS, _NOTES, begins={"schema_version": 1}
    ),
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
