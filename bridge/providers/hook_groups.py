"""Hook groups in a JSON file of the shape that Claude Code and Codex share.

Owns where a group of ours stands among others. Promises that one is appended, never
inserted, since Codex trusts a hook by its place and its exact line, and that hooks
which others put beside ours stay.
"""

from __future__ import annotations

from bridge.providers import merge
from bridge.providers.strict_json import STRICT, Dialect


def with_group(
    text: str | None, event: str, group: object, dialect: Dialect = STRICT
) -> str | None:
    """The text with this group at this event, as its last one unless it is there."""
    if text is None or _place(text, event, _commands(group), dialect) is None:
        return merge.with_element(text, ("hooks", event), group, dialect)
    return text


def without_group(
    text: str | None, event: str, group: object, dialect: Dialect = STRICT
) -> tuple[str | None, bool]:
    """The text without it, and whether groups of others stood after it."""
    place = None if text is None else _place(text, event, _commands(group), dialect)
    if text is None or place is None:
        return text, False
    there = merge.elements(text, ("hooks", event), dialect)
    path = ("hooks", event, *_whole(there, place))
    return merge.without(text, path, dialect), place[0] + 1 < len(there)


def _place(
    text: str, event: str, ours: list[str], dialect: Dialect
) -> tuple[int, int] | None:
    """Which group of this event has our line, and which of its hooks it is."""
    for number, group in enumerate(merge.elements(text, ("hooks", event), dialect)):
        for place, command in enumerate(_commands(group)):
            if command in ours:
                return number, place
    return None


def _whole(there: list[object], place: tuple[int, int]) -> tuple[str | int, ...]:
    """Our whole group, or only our hook where others were put beside it."""
    if len(_commands(there[place[0]])) > 1:
        return place[0], "hooks", place[1]
    return (place[0],)


def _commands(group: object) -> list[str]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    entries = hooks if isinstance(hooks, list) else []
    return [
        str(entry.get("command", "")) if isinstance(entry, dict) else ""
        for entry in entries
    ]
