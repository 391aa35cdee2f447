"""Strict JSON with the place of every value, so that a text can be edited in place.

Owns the reading. Promises that exactly RFC 8259 is taken, with three rules more:
no name twice in one object, since hosts then disagree about which one counts, no
nesting deeper than 64, and no number of over 1,000 characters. A problem names the
line it stands in, and is found in one pass. For a host that reads more than that,
its dialect says what more, and nothing else is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

DEPTH_LIMIT = 64
DIGITS_LIMIT = 1000
"""Characters of one number; Python itself reads no whole number over 4,300."""

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
# Possessive: a text that does not end is found out in one pass, whatever its length.
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_WORD = re.compile(r"true|false|null")
# A text in quotes is only here so that what looks like a comment in it is none; one
# that does not end is over with its line.
_COMMENT_OR_TEXT = re.compile(
    r'"(?:[^"\\\n]|\\[^\n])*+"?|(?P<comment>//[^\r\n]*|/\*.*?(?:\*/|\Z))', re.DOTALL
)
_LONE_RETURN = re.compile(r"\r(?!\n)")
_NOT_A_LINE_END = re.compile(r"[^\r\n]")


class NotStrict(ValueError):
    """The text is not strict JSON, or not of the shape that is needed.

    `line` counts from 1; `what` says what is wrong there.
    """

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line
        self.what = what


class Dialect(Struct, frozen=True):
    """What a host reads beyond strict JSON.

    `comments`: // to the end of its line, and /* */. `trailing_commas`: one after
    the last value of an object or list. `byte_order_mark`: one before everything.
    """

    comments: bool = False
    trailing_commas: bool = False
    byte_order_mark: bool = False


STRICT = Dialect()
LENIENT = Dialect(comments=True, trailing_commas=True, byte_order_mark=True)


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


def parse(text: str, dialect: Dialect = STRICT) -> Node:
    """The whole text as one value; raises NotStrict."""
    plain = blanked(text, dialect)
    node = _value(plain, after_space(plain, 0), 0, dialect)
    end = after_space(plain, node.end)
    if end != len(plain):
        raise _problem(plain, end, "nothing may follow the value")
    return node


def comments(text: str, dialect: Dialect) -> list[tuple[int, int]]:
    """Where each comment begins and ends; raises NotStrict for one without an end.

    And for a line comment that a lone carriage return ends: hosts disagree there.
    """
    if not dialect.comments:
        return []
    found = _COMMENT_OR_TEXT.finditer(text)
    spans = [match.span() for match in found if match["comment"] is not None]
    for start, end in spans:
        if text.startswith("/*", start) and not text.endswith("*/", start + 2, end):
            raise _problem(text, start, "this comment does not end")
        if text.startswith("//", start) and _LONE_RETURN.match(text, end):
            raise _problem(text, end, "a lone carriage return ends a comment")
    return spans


def blanked(text: str, dialect: Dialect) -> str:
    """The text with spaces for its comments and byte order mark, as long as before."""
    pieces, end = [], 0
    if dialect.byte_order_mark and text.startswith("\ufeff"):
        pieces, end = [" "], 1
    for start, stop in comments(text, dialect):
        pieces += [text[end:start], _NOT_A_LINE_END.sub(" ", text[start:stop])]
        end = stop
    return "".join(pieces) + text[end:]


def line_of(text: str, position: int) -> int:
    """The number of the line that this position is in, from 1."""
    return text.count("\n", 0, position) + 1


def value_of(text: str, node: Node) -> object:
    """The value itself, whatever the dialect."""
    if node.kind == "object":
        return {child.name: value_of(text, child) for child in node.children}
    if node.kind == "array":
        return [value_of(text, child) for child in node.children]
    value: object = json.loads(text[node.start : node.end])
    return value


def after_space(text: str, position: int) -> int:
    """The first position from here that holds no space; the text must be blanked."""
    match = _SPACE.match(text, position)
    return position if match is None else match.end()


def _value(
    text: str, start: int, depth: int, dialect: Dialect, name: str | None = None
) -> Node:
    first = text[start : start + 1]
    if first in ("{", "["):
        if depth == DEPTH_LIMIT:
            raise _problem(text, start, f"nested deeper than {DEPTH_LIMIT}")
        closing = "}" if first == "{" else "]"
        children = tuple(_children(text, start, closing, depth, dialect))
        end = _closing(text, start, closing, children, dialect) + 1
        kind: Literal["object", "array"] = "object" if first == "{" else "array"
        return Node(kind, start, end, start, name, children)
    for pattern in (_STRING, _NUMBER, _WORD):
        if (match := pattern.match(text, start)) is not None:
            if pattern is _NUMBER and match.end() - start > DIGITS_LIMIT:
                raise _problem(text, start, f"a number of over {DIGITS_LIMIT} digits")
            return Node("plain", start, match.end(), start, name)
    raise _problem(text, start, _guess(text, start))


def _children(
    text: str, start: int, closing: str, depth: int, dialect: Dialect
) -> Iterator[Node]:
    position = after_space(text, start + 1)
    if text[position : position + 1] == closing:
        return
    names: set[str] = set()
    while True:
        if closing == "}":
            child = _member(text, position, depth, names, dialect)
        else:
            child = _value(text, position, depth + 1, dialect)
        yield child
        position = after_space(text, child.end)
        if text[position : position + 1] != ",":
            return
        position = after_space(text, position + 1)
        if dialect.trailing_commas and text[position : position + 1] == closing:
            return


def _member(
    text: str, position: int, depth: int, names: set[str], dialect: Dialect
) -> Node:
    quoted = _STRING.match(text, position)
    if quoted is None:
        raise _problem(text, position, "a name in double quotes must stand here")
    name: str = json.loads(quoted.group())
    if name in names:
        raise _problem(text, position, f"the name {quoted.group()} stands here twice")
    names.add(name)
    colon = after_space(text, quoted.end())
    if text[colon : colon + 1] != ":":
        raise _problem(text, colon, "a colon must stand here")
    node = _value(text, after_space(text, colon + 1), depth + 1, dialect, name)
    return replace(node, opening=position)


def _closing(
    text: str, start: int, closing: str, children: tuple[Node, ...], dialect: Dialect
) -> int:
    position = after_space(text, children[-1].end if children else start + 1)
    if dialect.trailing_commas and children and text[position : position + 1] == ",":
        position = after_space(text, position + 1)
    if text[position : position + 1] != closing:
        raise _problem(text, position, f"a comma or {closing} must stand here")
    return position


def _guess(text: str, position: int) -> str:
    rest = text[position : position + 8]
    if not rest:
        return "the text ends too early"
    if rest.startswith("\ufeff"):
        return "a byte order mark is not strict JSON"
    if rest.startswith(("//", "/*", "#")):
        return "no comment may stand here"
    if rest.startswith(("}", "]")):
        return "a value must stand here (a comma too many?)"
    if rest.startswith('"'):
        return "this text in quotes does not end, or holds a control character"
    return "this is not a JSON value"


def _problem(text: str, position: int, what: str) -> NotStrict:
    return NotStrict(line_of(text, position), what)
