"""Installing for Claude Code: into a project, or into the person's account.

Owns the two entries in the settings of that place, `.claude/settings.local.json` in
a project, for which Claude Code asks nothing, and the plugin package that they name,
in our own state folder, where Claude Code reads it in place. Promises that
nothing else is put there, but for what a person asks for besides (mid_turn.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bridge.errors import Refused
from bridge.providers import merge, mid_turn, templates
from bridge.providers.project_file import (
    PackageFile,
    Plan,
    changes,
    read,
    strictly,
)
from bridge.providers.scope import Scope

SETTINGS = ".claude/settings.local.json"
_FILES = {Scope.PROJECT: SETTINGS, Scope.ACCOUNT: ".claude/settings.json"}
_MARKETPLACE = ("extraKnownMarketplaces", "agentworks")
_ENABLED = ("enabledPlugins", "agentworks@agentworks")


def plan(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What installing into this project would change; changes nothing.

    `templates_dir` is packaging/plugins. Raises Refused for a settings file that
    cannot be edited, with its line, and for a marketplace of this name that is
    not ours.
    """
    name = _FILES[scope]
    before = read(project, name)
    with strictly(project / name):
        _refuse_other_marketplace(project / name, before, state_dir)
        after = merge.with_member(before, _MARKETPLACE, _source(state_dir))
        after = merge.with_member(after, _ENABLED, True)
    return Plan(
        changes=changes(project, {name: before}, {name: after}),
        package=tuple(package(state_dir, templates_dir)),
        notes=_notes(scope),
    )


def removal(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What removing from this project would change; the package stays.

    Raises Refused as `plan` does.
    """
    name = _FILES[scope]
    before = after = read(project, name)
    with strictly(project / name):
        for path, ours in ((_ENABLED, True), (_MARKETPLACE, _source(state_dir))):
            if after is not None and merge.member(after, path) == ours:
                after = merge.without(after, path)
        after = mid_turn.without("claude", after, state_dir)
    return Plan(changes=changes(project, {name: before}, {name: after}))


def package(state_dir: Path, templates_dir: Path) -> Iterator[PackageFile]:
    """The plugin package as it must lie in the state folder."""
    words, target = templates.places(state_dir), _package_dir(state_dir)
    for name, content in templates.filled_package(templates_dir / "claude", words):
        yield PackageFile(target / name, content)


def _notes(scope: Scope) -> tuple[str, ...]:
    name = _FILES[scope]
    notes = (
        "A Claude Code chat that is open already sees the plugin after "
        "/reload-plugins.",
        "Claude Code asks you before its agent sends or acknowledges a message, also"
        " in a turn that a message started. To allow it all, put "
        '"mcp__plugin_agentworks_messages" into permissions.allow of '
        f"{name} yourself.",
    )
    if scope is Scope.ACCOUNT:
        return notes
    return (
        *notes,
        f"{name} names a folder of this computer: keep it out of commits.",
    )


def _package_dir(state_dir: Path) -> Path:
    return state_dir / "plugins" / "claude"


def _source(state_dir: Path) -> object:
    return {"source": {"source": "directory", "path": str(_package_dir(state_dir))}}


def _refuse_other_marketplace(path: Path, text: str | None, state_dir: Path) -> None:
    there = None if text is None else merge.member(text, _MARKETPLACE)
    if there is not None and there != _source(state_dir):
        raise Refused(
            "name_taken",
            f"{path} names another plugin marketplace “agentworks”, so "
            "ours was not put there.",
            "If it is an older one of yours, remove that entry and try again.",
        )
