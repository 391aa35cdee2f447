"""Installing into a project for Codex.

Owns our hook groups in `.codex/hooks.json`, our marked table in
`.codex/config.toml`, and the skill that makes `$agentworks` known. Promises that
groups are appended, never inserted, since Codex trusts a hook by its place and
its exact line; that whoever has a table of our name keeps it; and that the
person's trust and approvals are never written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from bridge.errors import Refused
from bridge.providers import marked_table, merge, templates
from bridge.providers.project_file import Plan, changes, read, strictly

HOOKS = ".codex/hooks.json"
CONFIG = ".codex/config.toml"
SKILL = ".agents/skills/agentworks/SKILL.md"
_SKILL_MARK = "<!-- written by `agentworks attach`"
_SERVERS = "mcp_servers"
_SERVER = "agentworks"
_NOTES = (
    "Codex runs new hooks only in a folder that you trust and after you trusted "
    "them: it asks at its next start, or type /hooks.",
    "Codex asks you before each message that an agent sends. To allow them all, put "
    f"this line below [{_SERVERS}.{_SERVER}] in {CONFIG} yourself: "
    'default_tools_approval_mode = "approve"',
    f"{HOOKS} and {CONFIG} name files of this computer: keep them out of commits.",
)


def plan(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What installing into this project would change; changes nothing.

    `templates_dir` is packaging/plugins. Raises Refused for a file that cannot be
    edited, with its line, and for a table or skill of our name that is not ours.
    """
    source, words = templates_dir / "codex", templates.places(state_dir)
    before = _texts(project)
    with strictly(project / HOOKS):
        hooks = _with_hooks(before[HOOKS], source, words)
    with strictly(project / CONFIG):
        config = _with_table(before[CONFIG], project, _block(source, words))
    skill = _with_skill(before[SKILL], project, source)
    after = {HOOKS: hooks, CONFIG: config, SKILL: skill}
    return Plan(changes=changes(project, before, after), notes=_NOTES)


def removal(project: Path, state_dir: Path, templates_dir: Path) -> Plan:
    """What removing from this project would change; raises Refused as `plan`."""
    source, words = templates_dir / "codex", templates.places(state_dir)
    before, notes = _texts(project), []
    with strictly(project / HOOKS):
        hooks, moves_others = _without_hooks(before[HOOKS], source, words)
    with strictly(project / CONFIG):
        config, stays = _without_table(before[CONFIG], _block(source, words))
    skill = _without_skill(before[SKILL])
    if moves_others:
        notes.append(
            "Codex will ask you to trust the hooks again that stood after ours."
        )
    if stays:
        notes.append(
            f"[{_SERVERS}.{_SERVER}] in {CONFIG} stays, since its comment lines are "
            "gone: remove it yourself."
        )
    after = {HOOKS: hooks, CONFIG: config, SKILL: skill}
    return Plan(changes=changes(project, before, after), notes=tuple(notes))


def is_installed(project: Path, state_dir: Path, templates_dir: Path) -> bool:
    """Would installing change nothing in this project? Raises Refused as `plan`."""
    return not plan(project, state_dir, templates_dir).changes


def _texts(project: Path) -> dict[str, str | None]:
    return {name: read(project, name) for name in (HOOKS, CONFIG, SKILL)}


# ---- hooks ----------------------------------------------------------------------


def groups(source: Path, words: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """Our hook groups, event by event, in the order of the template."""
    template = json.loads((source / "hooks.json").read_bytes())
    for event, event_groups in template["hooks"].items():
        for group in event_groups:
            yield event, templates.filled(group, words)


def _with_hooks(text: str | None, source: Path, words: Mapping[str, str]) -> str | None:
    for event, group in groups(source, words):
        if text is None or _place(text, event, _commands(group)) is None:
            text = merge.with_element(text, ("hooks", event), group)
    return text


def _without_hooks(
    text: str | None, source: Path, words: Mapping[str, str]
) -> tuple[str | None, bool]:
    """The text without our hooks, and whether hooks of others stood after them."""
    moves_others = False
    for event, group in groups(source, words):
        place = None if text is None else _place(text, event, _commands(group))
        if text is not None and place is not None:
            count = len(merge.elements(text, ("hooks", event)))
            moves_others = moves_others or place[0] + 1 < count
            text = merge.without(text, ("hooks", event, *_whole(text, event, place)))
    return text, moves_others


def _place(text: str, event: str, ours: list[str]) -> tuple[int, int] | None:
    """Which group of this event has our line, and which of its hooks it is."""
    for number, group in enumerate(merge.elements(text, ("hooks", event))):
        for place, command in enumerate(_commands(group)):
            if command in ours:
                return number, place
    return None


def _whole(text: str, event: str, place: tuple[int, int]) -> tuple[str | int, ...]:
    """Our whole group, or only our hook where others were put beside it."""
    group = merge.elements(text, ("hooks", event))[place[0]]
    if len(_commands(group)) > 1:
        return place[0], "hooks", place[1]
    return (place[0],)


def _commands(group: object) -> list[str]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    entries = hooks if isinstance(hooks, list) else []
    return [
        str(entry.get("command", "")) if isinstance(entry, dict) else ""
        for entry in entries
    ]


# ---- the tool server -------------------------------------------------------------


def _block(source: Path, words: Mapping[str, str]) -> str:
    pipe = json.dumps(words["@PIPE@"], ensure_ascii=False)
    template = (source / "config.toml").read_bytes().decode()
    return str(templates.filled(template, {**words, "@PIPE@": pipe}))


def _with_table(text: str | None, project: Path, block: str) -> str | None:
    there = None if text is None else _server(marked_table.parsed(text))
    if there is None:
        return marked_table.with_block(text, block)
    if not _is_ours(there, block):
        raise _name_taken(project / CONFIG, f"{_SERVERS}.{_SERVER}")
    return text


def _without_table(text: str | None, block: str) -> tuple[str | None, bool]:
    """The text without our table, and whether one stays that has lost its marks."""
    if text is None or not _is_ours(_server(marked_table.parsed(text)), block):
        return text, False
    if not marked_table.is_marked(text, block):
        return text, True
    return marked_table.without_block(text, block), False


def _is_ours(there: object, block: str) -> bool:
    """Ours, whatever the person added to it, such as the line that approves tools."""
    ours = _server(marked_table.parsed(block))
    if not isinstance(there, dict) or not isinstance(ours, dict):
        return False
    return all(there.get(name) == value for name, value in ours.items())


def _server(document: dict[str, object]) -> object | None:
    servers = document.get(_SERVERS)
    return servers.get(_SERVER) if isinstance(servers, dict) else None


# ---- the skill -------------------------------------------------------------------


def _with_skill(text: str | None, project: Path, source: Path) -> str:
    if text is not None and _SKILL_MARK not in text:
        raise _name_taken(project / SKILL, "a skill “agentworks”")
    return (source / "skills" / "agentworks" / "SKILL.md").read_bytes().decode()


def _without_skill(text: str | None) -> str | None:
    return text if text is not None and _SKILL_MARK not in text else None


def _name_taken(path: Path, what: str) -> Refused:
    return Refused(
        "name_taken",
        f"{path} has {what} that is not ours, so it was not touched.",
        "If it is an older one of yours, remove it and try again.",
    )
