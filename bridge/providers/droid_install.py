"""Installing for Factory's Droid, into a project or the whole account.

Owns our hook groups in the one file of the project that Droid reads its hooks from:
`.factory/hooks.json` where there is one, else `.factory/settings.json`, which every
version reads. Promises that no file is made that would make Droid overlook hooks
that stand in the other.
"""

from __future__ import annotations

from pathlib import Path

from bridge.providers import hook_lines, merge, templates
from bridge.providers.project_file import Plan, changes, read, strictly
from bridge.providers.scope import Scope

HOOKS = ".factory/hooks.json"
SETTINGS = ".factory/settings.json"
_NOTES = (
    "Droid sees new hooks at its next start; look for ours with /hooks there.",
    "Droid has no tool server of ours: its agent uses `agentworks bridge message` in "
    "its shell.",
)
_COMMITS = "The line names files of this computer: keep it out of commits."


def plan(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What installing into this project would change; changes nothing.

    `templates_dir` is packaging/plugins. Raises Refused for a file that cannot be
    edited, with its line.
    """
    before = _texts(project)
    name = SETTINGS if before[HOOKS] is None else HOOKS
    with strictly(project / name):
        lines = _lines(before[name], name, state_dir, templates_dir)
        after = before | {name: hook_lines.with_lines(before[name], lines)}
    notes = _NOTES if scope is Scope.ACCOUNT else (*_NOTES, _COMMITS)
    return Plan(changes=changes(project, before, after), notes=notes)


def removal(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What removing from this project would change; raises Refused as `plan`."""
    before = _texts(project)
    after = dict(before)
    for name, text in before.items():
        with strictly(project / name):
            lines = _lines(text, name, state_dir, templates_dir)
            after[name] = hook_lines.without_lines(text, lines)
    return Plan(changes=changes(project, before, after))


def _texts(project: Path) -> dict[str, str | None]:
    return {name: read(project, name) for name in (HOOKS, SETTINGS)}


def _lines(
    text: str | None, name: str, state_dir: Path, templates_dir: Path
) -> list[hook_lines.HookLine]:
    """Our lines, by event alone in a hooks file that is not wrapped as settings are."""
    words = templates.places(state_dir)
    template = templates_dir / "droid" / "hooks.json"
    lines = list(hook_lines.of_template(template, words))
    is_wrapped = text is None or merge.find(text, ("hooks",)) is not None
    if name == SETTINGS or is_wrapped:
        return lines
    return [hook_lines.HookLine(each.path[1:], each.entry) for each in lines]
