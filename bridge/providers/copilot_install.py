"""Installing for GitHub Copilot CLI, into a project or the whole account.

Owns a hook file and a skill of our own, and our tool server in `.github/mcp.json`.
Promises that files and servers of our names which are not ours are kept, and that
the person's trust and approvals are never written.
"""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct

from bridge.providers import mid_turn, own_file, templates, tool_server
from bridge.providers.project_file import Plan, changes, read, strictly
from bridge.providers.scope import Scope

HOOKS = ".github/hooks/agentworks.json"
SERVERS = ".github/mcp.json"
SKILL = ".github/skills/agentworks/SKILL.md"
MID_TURN = ".github/hooks/agentworks-mid-turn.json"
# A JSON file cannot say who wrote it; this word is in each line of ours.
_HOOK_MARK = " hook copilot "
_APPROVAL = (
    "Copilot CLI asks you before each message that an agent sends, and lets you "
    "allow it for good there."
)


class _Place(Struct, frozen=True):
    """Where Copilot CLI looks, and what the person is told."""

    hooks: str
    servers: str
    skill: str
    mid_turn: str
    notes: tuple[str, ...]


_PLACES = {
    Scope.PROJECT: _Place(
        HOOKS,
        SERVERS,
        SKILL,
        MID_TURN,
        (
            "Copilot CLI runs a project's hooks and tools only in a folder that you "
            "trust: it asks at its next start.",
            _APPROVAL,
            f"{HOOKS} and {SERVERS} name files of this computer: keep them out of "
            "commits.",
        ),
    ),
    Scope.ACCOUNT: _Place(
        ".copilot/hooks/agentworks.json",
        ".copilot/mcp-config.json",
        ".copilot/skills/agentworks/SKILL.md",
        ".copilot/hooks/agentworks-mid-turn.json",
        ("Copilot CLI sees new hooks and tools at its next start.", _APPROVAL),
    ),
}


def plan(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What installing into this project would change; changes nothing.

    `templates_dir` is packaging/plugins. Raises Refused for a file that cannot be
    edited, with its line, and for a file or server of our name that is not ours.
    """
    place, source = _PLACES[scope], templates_dir / "copilot"
    before, words = _texts(project, place), templates.places(state_dir)
    template = (source / "hooks.json").read_bytes().decode()
    hooks = templates.filled_document(template, words)
    skill = (source / "skills" / "agentworks" / "SKILL.md").read_bytes().decode()
    path = project / place.servers
    with strictly(path):
        server = _server(source, state_dir)
        servers = tool_server.placed(before[place.servers], path, server)
    after: dict[str, str | None] = {place.servers: servers}
    for name, content, mark in (
        (place.hooks, hooks, _HOOK_MARK),
        (place.skill, skill, own_file.WRITTEN),
    ):
        after[name] = own_file.placed(project / name, before[name], content, mark)
    return Plan(changes=changes(project, before, after), notes=place.notes)


def removal(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What removing from this project would change; raises Refused as `plan`."""
    place = _PLACES[scope]
    before = {**_texts(project, place), place.mid_turn: read(project, place.mid_turn)}
    server = _server(templates_dir / "copilot", state_dir)
    with strictly(project / place.servers):
        servers = tool_server.taken_out(before[place.servers], server)
    with strictly(project / place.mid_turn):
        after_tools = mid_turn.without("copilot", before[place.mid_turn], state_dir)
    after = {
        place.mid_turn: after_tools,
        place.hooks: own_file.taken_out(before[place.hooks], _HOOK_MARK),
        place.servers: servers,
        place.skill: own_file.taken_out(before[place.skill]),
    }
    return Plan(changes=changes(project, before, after))


def _texts(project: Path, place: _Place) -> dict[str, str | None]:
    names = (place.hooks, place.servers, place.skill)
    return {name: read(project, name) for name in names}


def _server(source: Path, state_dir: Path) -> object:
    template = (source / "mcp.json").read_bytes().decode()
    words = templates.places(state_dir)
    document = json.loads(templates.filled_document(template, words))
    return tool_server.of_template(document)
