"""Strict JSON: what Python's reader takes and no more, with the line of a problem."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.providers.strict_json import (
    DEPTH_LIMIT,
    DIGITS_LIMIT,
    LENIENT,
    STRICT,
    Dialect,
    Node,
    NotStrict,
    parse,
    value_of,
)
from tests.providers.documents import texts


class _Twice(ValueError):
    pass


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _Twice
    return dict(pairs)


def _no_constant(word: str) -> object:
    raise ValueError(word)


def _every(node: Node) -> list[Node]:
    return [node, *(deeper for child in node.children for deeper in _every(child))]


@given(texts())
def test_every_strict_text_is_read_as_the_standard_library_reads_it(text: str) -> None:
    node = parse(text)

    assert value_of(text, node) == json.loads(text)
    assert text[: node.start].strip() == text[node.end :].strip() == ""


@given(texts())
def test_every_value_knows_its_place(text: str) -> None:
    for node in _every(parse(text)):
        value_of(text, node)
        if node.name is not None:
            member = "{" + text[node.opening : node.end] + "}"
            assert list(json.loads(member)) == [node.name]


@given(texts(), st.data())
def test_a_damaged_text_is_taken_exactly_when_the_standard_library_takes_it(
    text: str, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(place, min(len(text), place + 2)))
    damaged = text[:place] + data.draw(st.text('{}[],:"\\/tnu0-.eE 1\n', max_size=2))
    damaged += text[end:]
    try:
        expected = json.loads(
            damaged, object_pairs_hook=_once, parse_constant=_no_constant
        )
    except ValueError:
        with pytest.raises(NotStrict):
            parse(damaged)
    else:
        assert value_of(damaged, parse(damaged)) == expected


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "ends too early"),
        ("{\n  // why\n}", 2, "double quotes"),
        ("\n# why\n{}", 2, "comment"),
        ("\ufeff{}", 1, "byte order mark"),
        ('{\n "a": 1,\n}', 3, "double quotes"),
        ("[\n1,\n]", 3, "comma too many"),
        ('{"a": 1}\n{}', 2, "nothing may follow"),
        ('{\n"a": 1,\n"b": 2,\n"\\u0061": 3}', 4, "twice"),
        ('{"a"\n1}', 2, "colon"),
        ("{'a': 1}", 1, "double quotes"),
        ('{"a": NaN}', 1, "not a JSON value"),
        ('{"a": 01}', 1, "a comma or }"),
        ('{"a": tru}', 1, "not a JSON value"),
        ('{"a": "b\nc"}', 1, "does not end, or holds a control"),
        ('{"a": [1', 1, "a comma or ]"),
        ("[" * (DEPTH_LIMIT + 1), 1, "deeper"),
        ('{\n"a": ' + "1" * (DIGITS_LIMIT + 1) + "}", 2, "digits"),
    ],
)
def test_a_problem_is_named_with_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(NotStrict) as refused:
        parse(text)

    assert refused.value.line == line
    assert what in refused.value.what


def test_the_deepest_allowed_text_is_read() -> None:
    parse("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT)


def test_the_longest_allowed_number_is_read() -> None:
    text = "1" * DIGITS_LIMIT

    assert value_of(text, parse(text)) == int(text)


@pytest.mark.parametrize("dialect", [STRICT, LENIENT])
@pytest.mark.parametrize("inside", ["x", '\\"', "\\u0041", " // "])
def test_a_long_text_that_does_not_end_is_refused_at_once(
    dialect: Dialect, inside: str
) -> None:
    text = '{\n"a": "' + inside * 20_000

    with pytest.raises(NotStrict) as refused:
        parse(text, dialect)

    assert refused.value.line == 2
