"""Strict JSON with the place of every value, so that a text can be edited in place.

Owns the reading. Promises that exactly RFC 8259 is taken, with two rules more:
no name twice in one object, since hosts then disagree about which one counts, and
no nesting deeper than 64. A problem names the line it stands in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

DEPTH_LIMIT = 64

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_WORD = re.compile(r"true|false|null")


class NotStrict(ValueError):
    """The text is not strict JSON, or not of the shape that is needed.

    `line` counts from 1; `what` says what is wrong there.
    """

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line
        self.what = what


class Node(Struct, frozen=True):
    """One value at `text[start:end]`; `name` is set for the members of an object.

    `opening` is where the member begins: at its name's quote, else at `start`.
    """

    kind: Literal["object", "array", "plain"]
    start: int
    end: int
    opening: int
    name: str | None = None
    children: tuple[Node, ...] = ()


def parse(text: str) -> Node:
    """The whole text as one value; raises NotStrict."""
    position = _after_space(text, 0)
    node = _value(text, position, 0)
    end = _after_space(text, node.end)
    if end != len(text):
        raise _problem(text, end, "nothing may follow the value")
    return node


def line_of(text: str, position: int) -> int:
    """The number of the line that this position is in, from 1."""
    return text.count("\n", 0, position) + 1


def value_of(text: str, node: Node) -> object:
    """The value itself."""
    value: object = json.loads(text[node.start : node.end])
    return value


def _value(
    text: str, start: int, depth: int, name: str | None = None, opening: int = -1
) -> Node:
    opening = start if opening < 0 else opening
    first = text[start : start + 1]
    if first in ("{", "["):
        if depth == DEPTH_LIMIT:
            raise _problem(text, start, f"nested deeper than {DEPTH_LIMIT}")
        closing = "}" if first == "{" else "]"
        children = tuple(_children(text, start, closing, depth))
        end = _closing(text, start, closing, children) + 1
        kind: Literal["object", "array"] = "object" if first == "{" else "array"
        return Node(kind, start, end, opening, name, children)
    for pattern in (_STRING, _NUMBER, _WORD):
        if (match := pattern.match(text, start)) is not None:
            return Node("plain", start, match.end(), opening, name)
    raise _problem(text, start, _guess(text, start))


def _children(text: str, start: int, closing: str, depth: int) -> Iterator[Node]:
    position = _after_space(text, start + 1)
    if text[position : position + 1] == closing:
        return
    names: set[str] = set()
    while True:
        if closing == "}":
            child = _member(text, position, depth, names)
        else:
            child = _value(text, position, depth + 1)
        yield child
        position = _after_space(text, child.end)
        if text[position : position + 1] != ",":
            return
        position = _after_space(text, position + 1)


def _member(text: str, position: int, depth: int, names: set[str]) -> Node:
    quoted = _STRING.match(text, position)
    if quoted is None:
        raise _problem(text, position, "a name in double quotes must stand here")
    name: str = json.loads(quoted.group())
    if name in names:
        raise _problem(text, position, f"the name {quoted.group()} stands here twice")
    names.add(name)
    colon = _after_space(text, quoted.end())
    if text[colon : colon + 1] != ":":
        raise _problem(text, colon, "a colon must stand here")
    return _value(text, _after_space(text, colon + 1), depth + 1, name, position)


def _closing(text: str, start: int, closing: str, children: tuple[Node, ...]) -> int:
    position = _after_space(text, children[-1].end if children else start + 1)
    if text[position : position + 1] != closing:
        raise _problem(text, position, f"a comma or {closing} must stand here")
    return position


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return position if match is None else match.end()


def _guess(text: str, position: int) -> str:
    rest = text[position : position + 8]
    if not rest:
        return "the text ends too early"
    if rest.startswith("\ufeff"):
        return "a byte order mark is not strict JSON"
    if rest.startswith(("//", "/*", "#")):
        return "a comment is not strict JSON"
    if rest.startswith(("}", "]")):
        return "a value must stand here (a comma too many?)"
    if rest.startswith('"'):
        return "this text in quotes does not end, or holds a control character"
    return "this is not a JSON value"


def _problem(text: str, position: int, what: str) -> NotStrict:
    return NotStrict(line_of(text, position), what)
