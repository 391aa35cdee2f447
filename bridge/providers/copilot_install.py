"""Installing into a project for GitHub Copilot CLI.

Owns a hook file and a skill of our own, and our tool server in `.github/mcp.json`.
Promises that files and servers of our names which are not ours are kept, and that
the person's trust and approvals are never written.
"""

from __future__ import annotations

import json
from pathlib import Path

from bridge.providers import mid_turn, own_file, templates, tool_server
from bridge.providers.project_file import Plan, changes, read, strictly

HOOKS = ".github/hooks/agentworks.json"
SERVERS = ".github/mcp.json"
SKILL = ".github/skills/agentworks/SKILL.md"
MID_TURN = ".github/hooks/agentworks-mid-turn.json"
# A JSON file cannot say who wrote it; this word is in each line of ours.
_HOOK_MARK = " hook copilot "
_NOTES = (
    "Copilot CLI runs a project's hooks and tools only in a folder that you trust: it "
    "asks at its next start.",
    "Copilot CLI asks you before each message that an agent sends, and lets you "
    "allow it for good there.",
    f"{HOOKS} and {SERVERS} name files of this computer: keep them out of commits.",
)


def plan(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What installing into this project would change; changes nothing.

    `templates_dir` is packaging/plugins. Raises Refused for a file that cannot be
    edited, with its line, and for a file or server of our name that is not ours.
    """
    source, before = templates_dir / "copilot", _texts(project)
    words = templates.places(state_dir)
    template = (source / "hooks.json").read_bytes().decode()
    hooks = templates.filled_document(template, words)
    skill = (source / "skills" / "agentworks" / "SKILL.md").read_bytes().decode()
    with strictly(project / SERVERS):
        server = _server(source, state_dir)
        servers = tool_server.placed(before[SERVERS], project / SERVERS, server)
    after: dict[str, str | None] = {
        HOOKS: own_file.placed(project / HOOKS, before[HOOKS], hooks, _HOOK_MARK),
        SERVERS: servers,
        SKILL: own_file.placed(project / SKILL, before[SKILL], skill),
    }
    return Plan(changes=changes(project, before, after), notes=_NOTES)


def removal(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What removing from this project would change; raises Refused as `plan`."""
    before = {**_texts(project), MID_TURN: read(project, MID_TURN)}
    server = _server(templates_dir / "copilot", state_dir)
    with strictly(project / SERVERS):
        servers = tool_server.taken_out(before[SERVERS], server)
    with strictly(project / MID_TURN):
        after_tools = mid_turn.without("copilot", before[MID_TURN], state_dir)
    after = {
        MID_TURN: after_tools,
        HOOKS: own_file.taken_out(before[HOOKS], _HOOK_MARK),
        SERVERS: servers,
        SKILL: own_file.taken_out(before[SKILL]),
    }
    return Plan(changes=changes(project, before, after))


def is_installed(project: Path, state_dir: Path, templates_dir: Path) -> bool:
    """Would installing change nothing in this project? Raises Refused as `plan`."""
    return not plan(project, state_dir, templates_dir).changes


def _texts(project: Path) -> dict[str, str | None]:
    return {name: read(project, name) for name in (HOOKS, SERVERS, SKILL)}


def _server(source: Path, state_dir: Path) -> object:
    template = (source / "mcp.json").read_bytes().decode()
    words = templates.places(state_dir)
    document = json.loads(templates.filled_document(template, words))
    return tool_server.of_template(document)
