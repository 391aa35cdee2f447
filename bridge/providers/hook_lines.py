"""Hook lines of ours among those of others, in a JSON file of lists.

Owns where a line of ours stands. Promises that each is appended to its list and
known again by its command alone, whatever a person changed beside it, and that
hooks which others put into the same group stay when ours goes.

A line is an entry with a `command`, or a group with a list of such `hooks`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from bridge.providers import merge, templates
from bridge.providers.merge import Step
from bridge.providers.strict_json import STRICT, Dialect


class HookLine(Struct, frozen=True):
    """One entry of ours and the path of the list that it belongs into."""

    path: tuple[str, ...]
    entry: object


def of_template(file: Path, words: Mapping[str, str]) -> Iterator[HookLine]:
    """Every entry of a template `{root: {event: [entry, …]}}`, in its order.

    Other members of the template, such as a version, are no lines.
    """
    for root, events in json.loads(file.read_bytes()).items():
        if isinstance(events, dict):
            for event, entries in events.items():
                for entry in entries:
                    yield HookLine((root, event), templates.filled(entry, words))


def with_lines(
    text: str | None, lines: Sequence[HookLine], dialect: Dialect = STRICT
) -> str | None:
    """The text with every line that is not there yet; raises NotStrict."""
    for line in lines:
        if text is None or _place(text, line, dialect) is None:
            text = merge.with_element(text, line.path, line.entry, dialect)
    return text


def without_lines(
    text: str | None, lines: Sequence[HookLine], dialect: Dialect = STRICT
) -> str | None:
    """The text without them; None when nothing is left. Raises NotStrict."""
    for line in lines:
        place = None if text is None else _place(text, line, dialect)
        if text is not None and place is not None:
            text = merge.without(text, (*line.path, *place), dialect)
    return text


def _place(text: str, line: HookLine, dialect: Dialect) -> tuple[Step, ...] | None:
    """Where our command stands in its list: the whole group if it is alone there."""
    ours = _commands(line.entry)
    for number, entry in enumerate(merge.elements(text, line.path, dialect)):
        commands = _commands(entry)
        for place, command in enumerate(commands):
            if command in ours:
                return (number,) if len(commands) == 1 else (number, "hooks", place)
    return None


def _commands(entry: object) -> list[str]:
    if not isinstance(entry, dict):
        return []
    hooks = entry.get("hooks")
    entries = hooks if isinstance(hooks, list) else [entry]
    return [
        str(each.get("command", "")) if isinstance(each, dict) else ""
        for each in entries
    ]
