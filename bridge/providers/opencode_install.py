"""Installing into a project for opencode.

Owns the plugin file and the command file in `.opencode`, and the plugin itself in
our own state folder. Promises that a file of our name which is not ours is kept.
No tool server is set up: one would serve all chats of a process and could not tell
which of them calls, so it could do nothing for any; a shell's command can.
"""

from __future__ import annotations

from pathlib import Path

from bridge.providers import own_file, templates
from bridge.providers.pi_install import package
from bridge.providers.project_file import Plan, changes, read

PLUGIN = ".opencode/plugin/agentworks.js"
COMMAND = ".opencode/command/agentworks.md"
_NOTES = (
    "opencode runs a project's plugins without asking, from its next start on.",
    f"{PLUGIN} names a folder of this computer: keep it out of commits.",
)


def plan(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What installing into this project would change; changes nothing.

    `templates_dir` is packaging/plugins. Raises Refused for a file of our name that
    is not ours, or cannot be read.
    """
    before, source = _texts(project), templates_dir / "opencode"
    plugin = templates.script(source / "plugin.js", state_dir)
    command = (source / "command.md").read_bytes().decode()
    after: dict[str, str | None] = {
        PLUGIN: own_file.placed(project / PLUGIN, before[PLUGIN], plugin),
        COMMAND: own_file.placed(project / COMMAND, before[COMMAND], command),
    }
    return Plan(
        changes=changes(project, before, after),
        package=tuple(package(state_dir, "opencode")),
        notes=_NOTES,
    )


def removal(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What removing from this project would change; the package stays."""
    before = _texts(project)
    after = {name: own_file.taken_out(text) for name, text in before.items()}
    return Plan(changes=changes(project, before, after))


def is_installed(project: Path, state_dir: Path, templates_dir: Path) -> bool:
    """Would installing change nothing in this project? Raises Refused as `plan`."""
    return not plan(project, state_dir, templates_dir).changes


def _texts(project: Path) -> dict[str, str | None]:
    return {name: read(project, name) for name in (PLUGIN, COMMAND)}
