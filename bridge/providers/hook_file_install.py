"""Installing hook lines into the one hook file of a project.

Promises that nothing else in the project changes, and that all entries of others in
that file stay. Which file that is, and what the person is told, is each host's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from bridge.providers import hook_lines, merge, templates
from bridge.providers.project_file import Plan, changes, read, strictly


class Host(Struct, frozen=True):
    """A host: its name, its file below the project, and sentences for the person.

    Its template is `<name>/hooks.json` in packaging/plugins. `begins`: what a new file
    must have besides, which says nothing by itself.
    """

    name: str
    file: str
    notes: tuple[str, ...]
    begins: Mapping[str, int] = {}


def plan(host: Host, project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What installing would change; Refused for a file that cannot be edited."""
    before = read(project, host.file)
    with strictly(project / host.file):
        lines = _lines(host, state_dir, templates_dir)
        after = hook_lines.with_lines(_begun(host, before), lines)
    found = changes(project, {host.file: before}, {host.file: after})
    return Plan(changes=found, notes=host.notes)


def removal(host: Host, project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What removing would change; raises Refused as `plan`."""
    before = read(project, host.file)
    with strictly(project / host.file):
        lines = _lines(host, state_dir, templates_dir)
        after = hook_lines.without_lines(before, lines)
    after = None if after == _begun(host, None) else after
    return Plan(changes=changes(project, {host.file: before}, {host.file: after}))


def _begun(host: Host, text: str | None) -> str | None:
    """A new file with what the host asks for; an old one as it is."""
    if text is None:
        for name, value in host.begins.items():
            text = merge.with_member(text, (name,), value)
    return text


def _lines(
    host: Host, state_dir: Path, templates_dir: Path
) -> list[hook_lines.HookLine]:
    template = templates_dir / host.name / "hooks.json"
    return list(hook_lines.of_template(template, templates.places(state_dir)))
