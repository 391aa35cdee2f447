"""Edits keep every byte of others, and taking out gives the first text again."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.providers import merge
from bridge.providers.strict_json import NotStrict
from tests.providers.documents import NAMES, OBJECTS, VALUES, texts

PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
OURS = {"type": "command", "command": "ask", "timeout": 10}


def at(document: object, path: Sequence[str | int]) -> object:
    for step in path:
        assert isinstance(document, dict | list)
        document = document[step]  # type: ignore[index]
    return document


def others(document: object, path: Sequence[str | int]) -> object:
    """The document without what is at the path, and without emptied containers."""
    if not path or not isinstance(document, dict | list):
        return None
    first, rest = path[0], path[1:]
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    kept = [
        (name, others(each, rest) if name == first else each) for name, each in pairs
    ]
    return [pair for pair in kept if pair[0] != first or pair[1] not in (None, [])]


# ---- members ------------------------------------------------------------------


@given(texts(OBJECTS), PATHS, VALUES)
def test_a_member_is_added_and_taken_out_without_a_trace(
    text: str, path: tuple[str, ...], value: object
) -> None:
    try:
        there = merge.find(text, path) is not None
        added = merge.with_member(text, path, value)
    except NotStrict:
        return  # something on the path is no object

    assert at(json.loads(added), path) == value
    assert others(json.loads(added), path) == others(json.loads(text), path)
    assert merge.with_member(added, path, value) == added
    if not there:
        assert merge.without(added, path) == text


@given(texts(OBJECTS), PATHS, VALUES)
def test_the_order_of_what_was_there_stays(
    text: str, path: tuple[str, ...], value: object
) -> None:
    try:
        added = merge.with_member(text, path, value)
    except NotStrict:
        return
    before, after = list(json.loads(text)), list(json.loads(added))

    assert after[: len(before)] == before


# ---- elements -------------------------------------------------------------------


@given(texts(OBJECTS), PATHS)
def test_an_element_is_appended_and_taken_out_without_a_trace(
    text: str, path: tuple[str, ...]
) -> None:
    try:
        before = merge.elements(text, path)
        added = merge.with_element(text, path, OURS)
    except NotStrict:
        return  # something on the path is no object, or its end no list

    assert at(json.loads(added), path) == [*before, OURS]
    assert merge.with_element(added, path, OURS) == added
    assert merge.without(added, (*path, len(before))) == text


@given(texts(OBJECTS), st.permutations(["Stop", "Start", "End"]), st.data())
def test_several_are_taken_out_in_any_order_without_a_trace(
    text: str, events: list[str], data: st.DataObject
) -> None:
    added: str | None = text
    try:
        for event in events:
            added = merge.with_element(added, ("hooks", event), OURS)
    except NotStrict:
        return
    for event in data.draw(st.permutations(events)):
        assert added is not None
        last = len(merge.elements(added, ("hooks", event))) - 1
        added = merge.without(added, ("hooks", event, last))

    assert json.loads(added or "{}") == json.loads(text)
    assert merge.with_element(added, ("hooks", "Stop"), OURS)


@given(PATHS, VALUES)
def test_a_text_of_our_own_leaves_nothing(path: tuple[str, ...], value: object) -> None:
    text = merge.with_member(None, path, value)

    assert text.endswith("}\n")
    assert at(json.loads(text), path) == value
    assert merge.without(text, path) is None


def test_others_after_ours_stay_when_ours_goes() -> None:
    text = merge.with_element(None, ("hooks", "Stop"), OURS)
    grown = merge.with_element(text, ("hooks", "Stop"), {"command": "theirs"})

    left = merge.without(grown, ("hooks", "Stop", 0))

    assert left is not None
    assert json.loads(left) == {"hooks": {"Stop": [{"command": "theirs"}]}}


# ---- how it looks -----------------------------------------------------------------


def test_an_addition_takes_on_the_layout_around_it() -> None:
    text = '{\r\n\t"a": [\r\n\t\t1\r\n\t]\r\n}\r\n'

    added = merge.with_element(text, ("hooks", "Stop"), {"x": 1})

    assert added == (
        '{\r\n\t"a": [\r\n\t\t1\r\n\t],\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t{'
        '\r\n\t\t\t\t"x": 1\r\n\t\t\t}\r\n\t\t]\r\n\t}\r\n}\r\n'
    )


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ('{"a": 1}', '{"a": 1, "b": true}'),
        ('{"a":1,"c":2}', '{"a":1,"c":2,"b": true}'),
        ('{"a": 1, "c": 2}', '{"a": 1, "c": 2, "b": true}'),
        ("{}", '{"b": true}'),
        ("{ }\n", '{ "b": true }\n'),
    ],
)
def test_an_addition_to_one_line_stays_on_it(text: str, added: str) -> None:
    assert merge.with_member(text, ("b",), True) == added


def test_a_value_is_replaced_in_its_place() -> None:
    text = '{\n  "on": {"us": false, "them": true}\n}'

    assert merge.with_member(text, ("on", "us"), True) == (
        '{\n  "on": {"us": true, "them": true}\n}'
    )


# ---- what is refused --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("[]", 1, "the whole must be an object"),
        ('{\n"hooks": []}', 2, '"hooks" must be an object'),
        ('{"hooks": {\n"Stop": {}}}', 2, '"Stop" must be a list'),
        ('{"hooks": null}', 1, '"hooks" must be an object'),
        ('{\n"a": 1,\n}', 3, "double quotes"),
    ],
)
def test_another_shape_is_refused_with_its_line(
    text: str, line: int, what: str
) -> None:
    with pytest.raises(NotStrict) as refused:
        merge.with_element(text, ("hooks", "Stop"), OURS)

    assert refused.value.line == line
    assert what in refused.value.what


def test_what_is_not_there_cannot_be_taken_out() -> None:
    with pytest.raises(ValueError, match="nothing at"):
        merge.without("{}", ("a",))
