"""Installing hook lines into the one hook file of a project.

Promises that nothing else in the project changes, and that all entries of others in
that file stay. Which file that is, and what the person is told, is each host's own.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from bridge.providers import hook_lines, templates
from bridge.providers.project_file import Plan, changes, read, strictly


class Host(Struct, frozen=True):
    """A host: its name, its file below the project, and sentences for the person.

    Its template is `<name>/hooks.json` in packaging/plugins.
    """

    name: str
    file: str
    notes: tuple[str, ...]


def plan(host: Host, project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What installing would change; Refused for a file that cannot be edited."""
    before = read(project, host.file)
    with strictly(project / host.file):
        lines = _lines(host, state_dir, templates_dir)
        after = hook_lines.with_lines(before, lines)
    found = changes(project, {host.file: before}, {host.file: after})
    return Plan(changes=found, notes=host.notes)


def removal(host: Host, project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What removing would change; raises Refused as `plan`."""
    before = read(project, host.file)
    with strictly(project / host.file):
        lines = _lines(host, state_dir, templates_dir)
        after = hook_lines.without_lines(before, lines)
    return Plan(changes=changes(project, {host.file: before}, {host.file: after}))


def _lines(
    host: Host, state_dir: Path, templates_dir: Path
) -> list[hook_lines.HookLine]:
    template = templates_dir / host.name / "hooks.json"
    return list(hook_lines.of_template(template, templates.places(state_dir)))
