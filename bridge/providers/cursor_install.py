"""Installing for Cursor, app and CLI, into a project or the whole account.

Owns our entries in `.cursor/hooks.json` and our server in `.cursor/mcp.json`.
Promises that all entries of others stay, and that a server of our name which is
not ours is kept.
"""

from __future__ import annotations

from pathlib import Path

from bridge.errors import Refused
from bridge.providers import hook_lines, merge, mid_turn, templates
from bridge.providers.project_file import Plan, changes, read, strictly
from bridge.providers.scope import Scope

HOOKS = ".cursor/hooks.json"
SERVERS = ".cursor/mcp.json"
_VERSION = ("version",)
_SERVER = ("mcpServers", "agentworks")
_TRUST = {
    Scope.PROJECT: "Cursor runs a project's hooks only in a folder that you trust, and "
    "asks before it starts a new tool server.",
    Scope.ACCOUNT: "Cursor asks before it starts a new tool server.",
}
_APP = (
    "In Cursor's app the messages of other agents arrive, but its agent cannot answer "
    "them: the app does not say which of its chats runs a command or calls a tool. "
    "In Cursor's CLI it can."
)
_COMMITS = (
    f"{HOOKS} and {SERVERS} name files of this computer: keep them out of commits."
)


def plan(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What installing into this project would change; changes nothing.

    `templates_dir` is packaging/plugins. Raises Refused for a file that cannot be
    edited, with its line, and for a server of our name that is not ours.
    """
    before = _texts(project)
    with strictly(project / HOOKS):
        hooks = _with_version(before[HOOKS])
        lines = _lines(state_dir, templates_dir)
        after = {HOOKS: hook_lines.with_lines(hooks, lines)}
    with strictly(project / SERVERS):
        after[SERVERS] = _with_server(project, before[SERVERS], _server(state_dir))
    return Plan(changes=changes(project, before, after), notes=_notes(scope))


def removal(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """What removing from this project would change; raises Refused as `plan`."""
    before = _texts(project)
    with strictly(project / HOOKS):
        lines = _lines(state_dir, templates_dir)
        hooks = hook_lines.without_lines(before[HOOKS], lines)
        hooks = mid_turn.without("cursor", hooks, state_dir)
    # What a new file begins with says nothing by itself.
    after = {HOOKS: None if hooks == _with_version(None) else hooks}
    with strictly(project / SERVERS):
        after[SERVERS] = _without_server(before[SERVERS], _server(state_dir))
    return Plan(changes=changes(project, before, after))


def _notes(scope: Scope) -> tuple[str, ...]:
    if scope is Scope.ACCOUNT:
        return (_TRUST[scope], _APP)
    return (_TRUST[scope], _APP, _COMMITS)


def _texts(project: Path) -> dict[str, str | None]:
    return {name: read(project, name) for name in (HOOKS, SERVERS)}


def _lines(state_dir: Path, templates_dir: Path) -> list[hook_lines.HookLine]:
    words = templates.places(state_dir)
    template = templates_dir / "cursor" / "hooks.json"
    return list(hook_lines.of_template(template, words))


def _with_version(text: str | None) -> str:
    """A new file with the version that Cursor asks for; an old one as it is."""
    return merge.with_member(None, _VERSION, 1) if text is None else text


def _server(state_dir: Path) -> dict[str, object]:
    pipe = templates.places(state_dir)["@PIPE@"]
    return {"command": pipe, "args": ["mcp", "cursor"]}


def _with_server(project: Path, text: str | None, server: dict[str, object]) -> str:
    there = None if text is None else merge.member(text, _SERVER)
    if text is not None and _is_ours(there, server):
        return text
    if there is not None:
        raise Refused(
            "name_taken",
            f"{project / SERVERS} has a server “agentworks” that is not ours, so it "
            "was not touched.",
            "If it is an older one of yours, remove it and try again.",
        )
    return merge.with_member(text, _SERVER, server)


def _without_server(text: str | None, server: dict[str, object]) -> str | None:
    if text is None or not _is_ours(merge.member(text, _SERVER), server):
        return text
    return merge.without(text, _SERVER)


def _is_ours(there: object, server: dict[str, object]) -> bool:
    """Ours, whatever the person added to it."""
    return isinstance(there, dict) and all(
        there.get(name) == value for name, value in server.items()
    )
