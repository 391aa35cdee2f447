"""Installing for opencode, into a project or the whole account.

Owns the plugin file and the command file in `.opencode`, and the plugin itself in
our own state folder. Promises that a file of our name which is not ours is kept.
No tool server is set up: one would serve all chats of a process and could not tell
which of them calls, so it could do nothing for any; a shell's command can.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from bridge.providers import own_file, templates
from bridge.providers.pi_install import package
from bridge.providers.project_file import Plan, changes, read
from bridge.providers.scope import Scope

PLUGIN = ".opencode/plugin/agentworks.js"
COMMAND = ".opencode/command/agentworks.md"


class _Place(Struct, frozen=True):
    """Where opencode looks, and what the person is told."""

    plugin: str
    command: str
    notes: tuple[str, ...]


_PLACES = {
    Scope.PROJECT: _Place(
        PLUGIN,
        COMMAND,
        (
            "opencode runs a project's plugins without asking, from its next start on.",
            f"{PLUGIN} names a folder of this computer: keep it out of commits.",
        ),
    ),
    Scope.ACCOUNT: _Place(
        ".config/opencode/plugin/agentworks.js",
        ".config/opencode/command/agentworks.md",
        ("opencode runs your own plugins from its next start on.",),
    ),
}


def plan(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What installing into this project would change; changes nothing.

    `templates_dir` is packaging/plugins. Raises Refused for a file of our name that
    is not ours, or cannot be read.
    """
    place, source = _PLACES[scope], templates_dir / "opencode"
    before = _texts(project, place)
    plugin = templates.script(source / "plugin.js", state_dir)
    command = (source / "command.md").read_bytes().decode()
    after: dict[str, str | None] = {
        name: own_file.placed(project / name, before[name], content)
        for name, content in ((place.plugin, plugin), (place.command, command))
    }
    return Plan(
        changes=changes(project, before, after),
        package=tuple(package(state_dir, "opencode")),
        notes=place.notes,
    )


def removal(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What removing from this project would change; the package stays."""
    before = _texts(project, _PLACES[scope])
    after = {name: own_file.taken_out(text) for name, text in before.items()}
    return Plan(changes=changes(project, before, after))


def _texts(project: Path, place: _Place) -> dict[str, str | None]:
    return {name: read(project, name) for name in (place.plugin, place.command)}
