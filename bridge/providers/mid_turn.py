"""The hook that is asked after each tool call: installed only where it was wished.

Owns its one line in the project's own hook file. Promises that a project gets it by
`attach --mid-turn` alone, since it is started after every tool call of every chat
there, and that taking our other hooks out takes it out too.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from bridge.providers import hook_lines, merge, templates
from bridge.providers.project_file import Plan, changes, read, strictly
from bridge.providers.scope import Scope
from bridge.providers.strict_json import LENIENT, STRICT, Dialect

_TIMEOUT_S = 10


class _Place(Struct, frozen=True):
    """Where a provider reads it, what the event is called, what is to be known.

    `account_file` is the file for all projects, where that has another name than in
    one; `is_flat`: its entries are no groups, and name no type.
    """

    file: str
    event: str
    notes: tuple[str, ...] = ()
    is_flat: bool = False
    dialect: Dialect = STRICT
    account_file: str = ""

    def file_for(self, scope: Scope) -> str:
        """The file below the project, or below the person's home."""
        is_other = scope is Scope.ACCOUNT and self.account_file
        return self.account_file if is_other else self.file


_PLACES = {
    "claude": _Place(
        ".claude/settings.local.json",
        "PostToolUse",
        account_file=".claude/settings.json",
    ),
    "codex": _Place(
        ".codex/hooks.json",
        "PostToolUse",
        ("Codex asks you to trust the new hook at its next start, or type /hooks.",),
    ),
    # A file beside our other hooks, which are one whole file of ours.
    "copilot": _Place(
        ".github/hooks/agentworks-mid-turn.json",
        "postToolUse",
        is_flat=True,
        account_file=".copilot/hooks/agentworks-mid-turn.json",
    ),
    "cursor": _Place(".cursor/hooks.json", "postToolUse", is_flat=True),
    "qwen": _Place(".qwen/settings.json", "PostToolUse", dialect=LENIENT),
}


def plan(
    provider: str, project: Path, state_dir: Path, scope: Scope = Scope.PROJECT
) -> Plan:
    """What installing it would change; nothing where the provider has no such hook.

    Raises Refused for a file that cannot be edited, with its line.
    """
    place = _PLACES.get(provider)
    if place is None:
        return Plan()
    name = place.file_for(scope)
    before = read(project, name)
    with strictly(project / name):
        ours = [_line(provider, state_dir)]
        after = hook_lines.with_lines(before, ours, place.dialect)
    found = changes(project, {name: before}, {name: after})
    return Plan(changes=found, notes=place.notes if found else ())


def without(provider: str, text: str | None, state_dir: Path) -> str | None:
    """The text of the provider's hook file without it."""
    place = _PLACES[provider]
    hooks = None if text is None else merge.member(text, ("hooks",), place.dialect)
    if not isinstance(hooks, dict) or not isinstance(hooks.get(place.event), list):
        return text  # whatever stands there is not ours
    ours = [_line(provider, state_dir)]
    return hook_lines.without_lines(text, ours, place.dialect)


def _line(provider: str, state_dir: Path) -> hook_lines.HookLine:
    ask, place = templates.places(state_dir)["@ASK@"], _PLACES[provider]
    line = f"[ -x {ask} ] || exit 0; exec {ask} hook {provider} {place.event}"
    entry: dict[str, object] = {"command": line, "timeout": _TIMEOUT_S}
    if not place.is_flat:
        entry = {"hooks": [{"type": "command", **entry}]}
    return hook_lines.HookLine(("hooks", place.event), entry)
