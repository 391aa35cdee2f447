"""Edits of other people's JSON that leave every other byte as it was.

Owns adding to and taking out of a JSON text. Promises that the order of keys,
spacing and all entries of others survive, that what is already there is not
added twice, and that taking out what was added gives the first text again, byte
for byte, as long as nobody touched it. All functions are pure; a text that is
not strict JSON, or has another shape, raises NotStrict with the line.

How an addition can be undone without a record of it: an object or list that we
make is spread over lines, while one that we find empty is filled without adding
any space that is not the same on both sides. So an empty one is left behind
exactly where there was one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from bridge.providers.strict_json import Node, NotStrict, line_of, parse, value_of

Step = str | int
_DEFAULT_UNIT = "  "
_SPACE = " \t\n\r"


def find(text: str, path: Sequence[Step]) -> Node | None:
    """The value at this path of names and places, or None."""
    node: Node | None = parse(text)
    for step in path:
        node = None if node is None else _child(text, node, step)
    return node


def member(text: str, path: Sequence[str]) -> object | None:
    """The value at this path; None when there is none (or null)."""
    node = find(text, path)
    return None if node is None else value_of(text, node)


def elements(text: str, path: Sequence[str]) -> list[object]:
    """The values of the list at this path; none when there is no such list."""
    node = find(text, path)
    if node is None:
        return []
    _require(text, node, "array")
    return [value_of(text, child) for child in node.children]


def with_member(text: str | None, path: Sequence[str], value: object) -> str:
    """The text with the value at this path, which is made as far as it is missing.

    A value that is there already is replaced in its place. None is no text yet.
    """
    if text is None:
        return _document(path, value)
    node, rest = _deepest(text, path)
    if rest:
        return _inserted(text, node, rest[0], _nested(rest[1:], value))
    if value_of(text, node) == value:
        return text
    rendered = _render(value, _indent_at(text, node.opening), _style(text))
    return text[: node.start] + rendered + text[node.end :]


def with_element(text: str | None, path: Sequence[str], value: object) -> str:
    """The text with the value as the last element of the list at this path.

    A value that is in the list already is left where it is. None is no text yet.
    """
    if text is None:
        return _document(path, [value])
    if value in elements(text, path):
        return text
    node, rest = _deepest(text, path)
    if rest:
        return _inserted(text, node, rest[0], _nested(rest[1:], [value]))
    _require(text, node, "array")
    return _inserted(text, node, None, value)


def without(text: str, path: Sequence[Step]) -> str | None:
    """The text without the value at this path, which must be there.

    An object or list above it that is left empty goes too if it looks like one
    that we made. None when nothing at all is left.
    """
    nodes = [parse(text)]
    for step in path:
        child = _child(text, nodes[-1], step)
        if child is None:
            raise ValueError(f"there is nothing at {path}")
        nodes.append(child)
    while len(nodes) > 1:
        gone, parent = nodes.pop(), nodes[-1]
        if len(parent.children) > 1 or not _looks_made(text, parent):
            return _cut(text, parent, gone)
    return None


# ---- finding ------------------------------------------------------------------


def _child(text: str, node: Node, step: Step) -> Node | None:
    if isinstance(step, int):
        _require(text, node, "array")
        return node.children[step] if step < len(node.children) else None
    _require(text, node, "object")
    return next((child for child in node.children if child.name == step), None)


def _deepest(text: str, path: Sequence[str]) -> tuple[Node, Sequence[str]]:
    """The last value of the path that is there, and the names that are not."""
    node = parse(text)
    for place, step in enumerate(path):
        child = _child(text, node, step)
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


# ---- adding --------------------------------------------------------------------


def _document(path: Sequence[str], value: object) -> str:
    return _render(_nested(path, value), "", ("\n", _DEFAULT_UNIT)) + "\n"


def _nested(names: Sequence[str], value: object) -> object:
    for name in reversed(names):
        value = {name: value}
    return value


def _inserted(text: str, node: Node, name: str | None, value: object) -> str:
    """The text with one more child, after the others."""
    lead = _lead(text, node)
    start = "" if name is None else f"{_quoted(name)}: "
    indent = lead.rpartition("\n")[2] if "\n" in lead else ""
    piece = start + _render(value, indent, _style(text))
    if node.children:
        place = node.children[-1].end
        return text[:place] + "," + lead + piece + text[place:]
    place = node.start + 1
    inner = text[place : node.end - 1]
    return text[:place] + inner + piece + inner + text[node.end - 1 :]


def _lead(text: str, node: Node) -> str:
    """The space before the last child; the next one gets the same."""
    if not node.children:
        return ""
    before = text[: node.children[-1].opening]
    lead = before[len(before.rstrip(_SPACE)) :]
    return lead if len(node.children) > 1 else lead or " "


def _style(text: str) -> tuple[str, str]:
    """How the text breaks and indents its lines."""
    newline = "\r\n" if "\r\n" in text else "\n"
    root = parse(text)
    lead = _lead(text, root).rpartition("\n")
    return newline, lead[2] if lead[1] and lead[2] else _DEFAULT_UNIT


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


def _looks_made(text: str, parent: Node) -> bool:
    """Was this, with its one child, made by `_render`? See the module."""
    child = parent.children[0]
    before = text[parent.start + 1 : child.opening]
    after = text[child.end : parent.end - 1]
    return before != after


def _cut(text: str, parent: Node, gone: Node) -> str:
    place = parent.children.index(gone)
    if len(parent.children) == 1:
        return (
            text[: parent.start + 1]
            + text[gone.end : parent.end - 1]
            + (text[parent.end - 1 :])
        )
    if place == 0:
        return text[: gone.opening] + text[parent.children[1].opening :]
    return text[: parent.children[place - 1].end] + text[gone.end :]
