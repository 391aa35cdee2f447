"""Comments, trailing commas and a byte order mark stay where they were."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.providers import merge
from bridge.providers.strict_json import LENIENT, Dialect, NotStrict, parse, value_of
from tests.providers.documents import NAMES, VALUES
from tests.providers.loose_documents import loose_texts, stripped

PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
OURS = {"type": "command", "command": "ask // no comment", "timeout": 10}


def plainly(text: str) -> object:
    value: object = json.loads(stripped(text))
    return value


@given(loose_texts())
def test_a_loose_text_means_what_is_left_without_its_comments(text: str) -> None:
    assert value_of(text, parse(text, LENIENT)) == plainly(text)


@given(loose_texts(), PATHS, VALUES)
def test_a_member_is_added_and_taken_out_without_a_trace(
    text: str, path: tuple[str, ...], value: object
) -> None:
    try:
        there = merge.find(text, path, LENIENT) is not None
        added = merge.with_member(text, path, value, LENIENT)
    except NotStrict:
        return  # something on the path is no object

    assert merge.member(json.dumps(plainly(added)), path) == value
    assert merge.with_member(added, path, value, LENIENT) == added
    if not there:
        assert merge.without(added, path, LENIENT) == text


@given(loose_texts(), PATHS)
def test_an_element_is_appended_and_taken_out_without_a_trace(
    text: str, path: tuple[str, ...]
) -> None:
    try:
        before = merge.elements(text, path, LENIENT)
        added = merge.with_element(text, path, OURS, LENIENT)
    except NotStrict:
        return  # something on the path is no object, or its end no list

    assert merge.elements(json.dumps(plainly(added)), path) == [*before, OURS]
    assert merge.with_element(added, path, OURS, LENIENT) == added
    assert merge.without(added, (*path, len(before)), LENIENT) == text


@given(loose_texts(), st.permutations(["Stop", "Start", "End"]), st.data())
def test_every_comment_is_still_there_whatever_is_taken_out_and_when(
    text: str, events: list[str], data: st.DataObject
) -> None:
    added: str | None = text
    try:
        for event in events:
            added = merge.with_element(added, ("hooks", event), OURS, LENIENT)
    except NotStrict:
        return
    for event in data.draw(st.permutations(events)):
        assert added is not None
        last = len(merge.elements(added, ("hooks", event), LENIENT)) - 1
        added = merge.without(added, ("hooks", event, last), LENIENT)

    assert added is not None
    assert plainly(added) == plainly(text)
    assert comments_of(added) == comments_of(text)


@given(loose_texts(), st.data())
def test_taking_out_any_value_keeps_all_others_and_the_comments_around(
    text: str, data: st.DataObject
) -> None:
    whole = plainly(text)
    assert isinstance(whole, dict)
    name = data.draw(st.sampled_from([*whole, ""]))
    gone = merge.find(text, (name,), LENIENT)
    if gone is None:
        return

    left = merge.without(text, (name,), LENIENT) or "{}"

    del whole[name]
    assert plainly(left) == whole
    around = comments_of(text[: gone.opening]) + comments_of(text[gone.end :])
    assert comments_of(left) == around


def comments_of(text: str) -> list[str]:
    """Every comment of the text, found letter by letter, in order."""
    found, place, is_quoted = [], 0, False
    while place < len(text):
        two = text[place : place + 2]
        if not is_quoted and two in ("//", "/*"):
            end = "\n" if two == "//" else "*/"
            stop = text.find(end, place + 2) % (len(text) + 1)
            found.append(text[place:stop].rstrip("\r"))
            place = stop + (0 if two == "//" else 2)
            continue
        is_quoted ^= two[0] == '"'
        place += 2 if is_quoted and two[0] == "\\" else 1
    return found


# ---- how it looks -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "added"),
    [
        (
            '{\n  // all\n  "a": 1, // one\n  "c": 2 // two\n  // last\n}\n',
            '{\n  // all\n  "a": 1, // one\n  "c": 2, // two\n  "b": true\n'
            "  // last\n}\n",
        ),
        ('{\n  "a": 1, // one\n}', '{\n  "a": 1, // one\n  "b": true,\n}'),
        ('{"a": 1 // one\n}', '{"a": 1, // one\n"b": true\n}'),
        ("{\n  // nothing yet\n}", '{\n  // nothing yet\n  "b": true\n}'),
        ("{ /* none */ }", '{ /* none */ "b": true }'),
        ('{\r\n\t/* x */ "a": 1\r\n}', '{\r\n\t/* x */ "a": 1,\r\n\t"b": true\r\n}'),
        ('\ufeff{"a": 1,}', '\ufeff{"a": 1, "b": true,}'),
    ],
)
def test_an_addition_goes_behind_the_comments_of_the_last_line(
    text: str, added: str
) -> None:
    assert merge.with_member(text, ("b",), True, LENIENT) == added
    assert merge.without(added, ("b",), LENIENT) == text


def test_a_file_that_only_a_comment_is_left_of_is_kept() -> None:
    text = "// the team's hooks\n" + merge.with_element(None, ("hooks", "Stop"), OURS)

    left = merge.without(text, ("hooks", "Stop", 0), LENIENT)

    assert left == "// the team's hooks\n{\n}\n"


# ---- what is refused --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("{\n/* no end }", 2, "does not end"),
        ("{\n# why\n}", 2, "double quotes"),
        ("[\n,]", 2, "not a JSON value"),
        ("{,\n}", 1, "double quotes"),
        ('{"a": 1,\n,}', 2, "double quotes"),
        ('{"a": 1}\n//x\ny', 3, "nothing may follow"),
        ('{\n//x\r"a": 1}', 2, "lone carriage return"),
        ("\n\ufeff{}", 2, "byte order mark"),
        ("// nothing\n", 2, "ends too early"),
    ],
)
def test_a_text_that_even_a_lenient_host_cannot_read_is_refused_with_its_line(
    text: str, line: int, what: str
) -> None:
    with pytest.raises(NotStrict) as refused:
        merge.with_member(text, ("b",), True, LENIENT)

    assert refused.value.line == line
    assert what in refused.value.what


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ('{"a": 1,}', Dialect(comments=True, byte_order_mark=True)),
        ("{} // x", Dialect(trailing_commas=True, byte_order_mark=True)),
        ("\ufeff{}", Dialect(comments=True, trailing_commas=True)),
    ],
)
def test_a_host_that_takes_one_thing_need_not_take_another(
    text: str, dialect: Dialect
) -> None:
    parse(text, LENIENT)

    with pytest.raises(NotStrict):
        parse(text, dialect)
