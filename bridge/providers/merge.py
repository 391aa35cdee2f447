"""Edits of other people's JSON that leave every other byte as it was.

Owns adding to and taking out of a JSON text. Promises that the order of keys,
spacing and all entries of others survive, that what is already there is not
added twice, and that taking out what was added gives the first text again, byte
for byte, as long as nobody touched it. All functions are pure; a text that is
not JSON of its dialect, or has another shape, raises NotStrict with the line.

Every function takes the dialect that the host reads: strict JSON if none is named,
LENIENT for hosts that take comments, trailing commas and a byte order mark. These
then stay, each comment at the value that it stood at: an addition goes behind the
comments that end the line of the last value, and after a trailing comma it ends
with one too. Names and places in a path count as in strict JSON.

How an addition can be undone without a record of it: an object or list that we
make is spread over lines, while one that we find empty is filled without adding
any space that is not the same on both sides. So an empty one is left behind
exactly where there was one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec import Struct

from bridge.providers.strict_json import (
    STRICT,
    Dialect,
    Node,
    NotStrict,
    after_space,
    blanked,
    comments,
    line_of,
    parse,
    value_of,
)

Step = str | int
_DEFAULT_UNIT = "  "
_SPACE = " \t\n\r"
_LINE_END = re.compile(r"\r?\n")
_BLANKS = re.compile(r"[ \t]*")


class _Text(Struct, frozen=True):
    """A text as it is, with spaces for its comments, and where they are."""

    whole: str
    plain: str
    comments: list[tuple[int, int]]
    root: Node

    def after_comments(self, start: int, end: int) -> int:
        """The end of the last comment between these two places, else `start`."""
        inside = (stop for first, stop in self.comments if start <= first < end)
        return max(inside, default=start)

    def after_own_line(self, position: int) -> int:
        """The end of the comments that follow on this line, else `position`."""
        starts = dict(self.comments)
        place = position
        while (stop := starts.get(_after_blanks(self.whole, place))) is not None:
            place = stop
        return place

    def is_line_comment(self, end: int) -> bool:
        """Does a comment end here that only the end of its line ends?"""
        return any(
            stop == end and self.whole.startswith("//", start)
            for start, stop in self.comments
        )

    def comma(self, node: Node) -> int | None:
        """Where the comma after this value stands, if there is one."""
        place = after_space(self.plain, node.end)
        return place if self.plain[place : place + 1] == "," else None


def find(text: str, path: Sequence[Step], dialect: Dialect = STRICT) -> Node | None:
    """The value at this path of names and places, or None."""
    node: Node | None = parse(text, dialect)
    for step in path:
        node = None if node is None else _child(text, node, step)
    return node


def member(text: str, path: Sequence[str], dialect: Dialect = STRICT) -> object | None:
    """The value at this path; None when there is none (or null)."""
    node = find(text, path, dialect)
    return None if node is None else value_of(text, node)


def elements(text: str, path: Sequence[str], dialect: Dialect = STRICT) -> list[object]:
    """The values of the list at this path; none when there is no such list."""
    node = find(text, path, dialect)
    if node is None:
        return []
    _require(text, node, "array")
    return [value_of(text, child) for child in node.children]


def with_member(
    text: str | None, path: Sequence[str], value: object, dialect: Dialect = STRICT
) -> str:
    """The text with the value at this path, which is made as far as it is missing.

    A value that is there already is replaced in its place. None is no text yet.
    """
    if text is None:
        return _document(path, value)
    read = _read(text, dialect)
    node, rest = _deepest(read, path)
    if rest:
        return _inserted(read, node, rest[0], _nested(rest[1:], value))
    if value_of(text, node) == value:
        return text
    rendered = _render(value, _indent_at(text, node.opening), _style(read))
    return text[: node.start] + rendered + text[node.end :]


def with_element(
    text: str | None, path: Sequence[str], value: object, dialect: Dialect = STRICT
) -> str:
    """The text with the value as the last element of the list at this path.

    A value that is in the list already is left where it is. None is no text yet.
    """
    if text is None:
        return _document(path, [value])
    if value in elements(text, path, dialect):
        return text
    read = _read(text, dialect)
    node, rest = _deepest(read, path)
    if rest:
        return _inserted(read, node, rest[0], _nested(rest[1:], [value]))
    _require(text, node, "array")
    return _inserted(read, node, None, value)


def without(text: str, path: Sequence[Step], dialect: Dialect = STRICT) -> str | None:
    """The text without the value at this path, which must be there.

    An object or list above it that is left empty goes too if it looks like one
    that we made. None when nothing at all is left.
    """
    read = _read(text, dialect)
    nodes = [read.root]
    for step in path:
        child = _child(text, nodes[-1], step)
        if child is None:
            raise ValueError(f"there is nothing at {path}")
        nodes.append(child)
    while len(nodes) > 1:
        gone, parent = nodes.pop(), nodes[-1]
        if len(parent.children) > 1 or not _looks_made(read, parent):
            return _cut(read, parent, gone)
    return None


# ---- finding ------------------------------------------------------------------


def _read(text: str, dialect: Dialect) -> _Text:
    return _Text(
        whole=text,
        plain=blanked(text, dialect),
        comments=comments(text, dialect),
        root=parse(text, dialect),
    )


def _child(text: str, node: Node, step: Step) -> Node | None:
    if isinstance(step, int):
        _require(text, node, "array")
        return node.children[step] if step < len(node.children) else None
    _require(text, node, "object")
    return next((child for child in node.children if child.name == step), None)


def _deepest(read: _Text, path: Sequence[str]) -> tuple[Node, Sequence[str]]:
    """The last value of the path that is there, and the names that are not."""
    node = read.root
    for place, step in enumerate(path):
        child = _child(read.whole, node, step)
        if child is None:
            return node, path[place:]
        node = child
    return node, ()


def _require(text: str, node: Node, kind: str) -> None:
    if node.kind != kind:
        what = "an object {…}" if kind == "object" else "a list […]"
        whose = "the whole" if node.name is None else json.dumps(node.name)
        line = line_of(text, node.start)
        raise NotStrict(line, f"{whose} must be {what} here")


def _after_blanks(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return position if match is None else match.end()


# ---- adding --------------------------------------------------------------------


def _document(path: Sequence[str], value: object) -> str:
    return _render(_nested(path, value), "", ("\n", _DEFAULT_UNIT)) + "\n"


def _nested(names: Sequence[str], value: object) -> object:
    for name in reversed(names):
        value = {name: value}
    return value


def _inserted(read: _Text, node: Node, name: str | None, value: object) -> str:
    """The text with one more child, after the others."""
    text, place = read.whole, _place_for_more(read, node)
    lead = _lead(read, node, place)
    indent = lead.rpartition("\n")[2] if "\n" in lead else ""
    start = "" if name is None else f"{_quoted(name)}: "
    piece = lead + start + _render(value, indent, _style(read))
    if not node.children:
        return text[:place] + piece + text[place:]
    last = node.children[-1]
    if read.comma(last) is not None:
        return text[:place] + piece + "," + text[place:]
    return text[: last.end] + "," + text[last.end : place] + piece + text[place:]


def _place_for_more(read: _Text, node: Node) -> int:
    """Behind the last child, its comma, and the comments of its line."""
    if not node.children:
        return read.after_comments(node.start + 1, node.end)
    last = node.children[-1]
    comma = read.comma(last)
    return read.after_own_line(last.end if comma is None else comma + 1)


def _lead(read: _Text, node: Node, place: int) -> str:
    """The space for one more child: as before the last one; see the module."""
    text, newline = read.whole, _style_of_lines(read.whole)
    if node.children:
        at = node.children[-1].opening
        lead, is_lone = _space_before(read, at), len(node.children) == 1
        next_line = newline + _indent_at(text, at)
        lead = " " if is_lone and not lead else lead
    elif place == node.start + 1:
        return text[place : node.end - 1]
    else:
        indent = _indent_at(text, node.start) + _style(read)[1]
        next_line = newline + indent
        lead = next_line if "\n" in text[place : node.end] else " "
    is_cut_off = read.is_line_comment(place) and _LINE_END.match(lead) is None
    return next_line if is_cut_off else lead


def _space_before(read: _Text, position: int) -> str:
    """The space before this; for one that only comments share a line with, a line."""
    lead = _trailing_space(read.whole[:position])
    if "\n" not in lead and "\n" in _trailing_space(read.plain[:position]):
        return _style_of_lines(read.whole) + _indent_at(read.whole, position)
    return lead


def _trailing_space(text: str) -> str:
    return text[len(text.rstrip(_SPACE)) :]


def _style(read: _Text) -> tuple[str, str]:
    """How the text breaks and indents its lines."""
    root = read.root
    lead = _space_before(read, root.children[-1].opening) if root.children else ""
    indent = lead.rpartition("\n")[2] if "\n" in lead else ""
    return _style_of_lines(read.whole), indent or _DEFAULT_UNIT


def _style_of_lines(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _render(value: object, indent: str, style: tuple[str, str]) -> str:
    newline, unit = style
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline + indent).join(lines)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


# ---- taking out ------------------------------------------------------------------


def _looks_made(read: _Text, parent: Node) -> bool:
    """Was this, with its one child, made by `_render`? See the module."""
    text, child = read.whole, parent.children[0]
    before = text[parent.start + 1 : child.opening]
    after = text[child.end : parent.end - 1]
    around = ""
    if parent is read.root:
        around = text[: parent.start] + text[parent.end :]
    return before != after and not (before + after + around).strip(_SPACE)


def _cut(read: _Text, parent: Node, gone: Node) -> str:
    """The text without this child, the space before it, and one comma."""
    text, place = read.whole, parent.children.index(gone)
    own = read.comma(gone)
    if place == 0 and len(parent.children) > 1 and own is not None:
        return _cut_first(text, gone, own)
    before = None if place == 0 else read.comma(parent.children[place - 1])
    start = parent.start + 1 if before is None else before + 1
    start = read.after_comments(start, gone.opening)
    left, right = text[:start], text[gone.end :]
    if own is not None:
        right = text[gone.end : own] + text[own + 1 :]
    elif before is not None:
        left = text[:before] + text[before + 1 : start]
    if read.is_line_comment(start) and _LINE_END.match(right) is None:
        left += text[start : gone.opening]
    return left + right


def _cut_first(text: str, gone: Node, comma: int) -> str:
    """The same for the first of several: the space before it is for the next one."""
    end = comma + 1
    while text[end] in _SPACE:
        end += 1
    return text[: gone.opening] + text[gone.end : comma] + text[end:]
