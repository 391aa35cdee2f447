"""Installing into the one settings file that a host reads hooks and tools from.

Owns our hook groups and our tool server in that file, which Gemini CLI and Qwen
Code share the shape of. Promises that comments, trailing commas and everything of
others stay, that a tool server of our name which is not ours is kept, and that the
person's trust is never written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from bridge.providers import hook_groups, mid_turn, own_file, templates, tool_server
from bridge.providers.project_file import Plan, changes, read, strictly
from bridge.providers.strict_json import LENIENT


class Host(Struct, frozen=True):
    """What differs between the hosts.

    `name` is also the folder of its templates; `settings` the file in a project;
    `files` whole files of ours there, each with its template; `has_mid_turn`: its
    hook after a tool call may stand in that file too.
    """

    name: str
    settings: str
    files: Mapping[str, str]
    notes: tuple[str, ...]
    has_mid_turn: bool = False


def plan(host: Host, project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What installing into this project would change; changes nothing.

    `templates_dir` is packaging/plugins. Raises Refused for a file that cannot be
    edited, with its line, and for a tool server or file of our name that is not
    ours.
    """
    source, before = templates_dir / host.name, _texts(host, project)
    with strictly(project / host.settings):
        ours = _template(source, state_dir)
        settings = _with_hooks(before[host.settings], ours["hooks"])
        server = tool_server.of_template(ours)
        path = project / host.settings
        settings = tool_server.placed(settings, path, server, LENIENT)
    after: dict[str, str | None] = {host.settings: settings}
    for name, template in host.files.items():
        content = (source / template).read_bytes().decode()
        after[name] = own_file.placed(project / name, before[name], content)
    return Plan(changes=changes(project, before, after), notes=host.notes)


def removal(host: Host, project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What removing from this project would change; raises Refused as `plan`."""
    source, before = templates_dir / host.name, _texts(host, project)
    with strictly(project / host.settings):
        ours = _template(source, state_dir)
        settings = _without_hooks(before[host.settings], ours["hooks"])
        server = tool_server.of_template(ours)
        settings = tool_server.taken_out(settings, server, LENIENT)
        if host.has_mid_turn:
            settings = mid_turn.without(host.name, settings, state_dir)
    after = {name: own_file.taken_out(before[name]) for name in host.files}
    return Plan(changes=changes(project, before, {host.settings: settings, **after}))


def _texts(host: Host, project: Path) -> dict[str, str | None]:
    return {name: read(project, name) for name in (host.settings, *host.files)}


def _template(source: Path, state_dir: Path) -> dict[str, dict[str, object]]:
    template = (source / "settings.json").read_bytes().decode()
    words = templates.places(state_dir)
    return dict(json.loads(templates.filled_document(template, words)))


def _with_hooks(text: str | None, ours: Mapping[str, object]) -> str | None:
    for event, groups in ours.items():
        for group in groups if isinstance(groups, list) else ():
            text = hook_groups.with_group(text, event, group, LENIENT)
    return text


def _without_hooks(text: str | None, ours: Mapping[str, object]) -> str | None:
    for event, groups in ours.items():
        for group in groups if isinstance(groups, list) else ():
            text, _ = hook_groups.without_group(text, event, group, LENIENT)
    return text
