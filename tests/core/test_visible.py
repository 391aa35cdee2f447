"""No text drives a terminal, hides from the eye or speaks as the host."""

from __future__ import annotations

import json
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.visible import all_visible, label, one_line, visible
from tests.core.examples import ANY_TEXT

PLAIN_KEYS = st.sampled_from(["name", "purpose", "is_online", "ids"])
ANY_FACTS = st.dictionaries(
    PLAIN_KEYS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | ANY_TEXT,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(PLAIN_KEYS, inner, max_size=3)
        ),
        max_leaves=8,
    ),
)
HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
HOST_TAG = re.compile(
    r"<\s*/?\s*(system-reminder|hook_prompt|channel|cross-session-message)|<\|",
    re.IGNORECASE,
)


def hidden_characters(text: str) -> set[str]:
    return {
        character
        for character in text
        if unicodedata.category(character) in HIDDEN_CATEGORIES
        and character not in "\n\t"
    }


@given(ANY_TEXT)
def test_only_newline_and_tab_of_all_controls_stay(text: str) -> None:
    assert hidden_characters(visible(text)) == set()


def test_every_hidden_character_of_this_python_is_shown_as_an_escape() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))

    assert hidden_characters(visible(everything)) == set()


@given(ANY_TEXT)
def test_no_host_tag_stays_whole(text: str) -> None:
    assert HOST_TAG.search(visible(text)) is None


@given(ANY_TEXT)
def test_showing_a_text_twice_changes_nothing_more(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(ANY_TEXT)
def test_visible_text_can_always_be_encoded(text: str) -> None:
    assert visible(text).encode().decode() == visible(text)


@given(st.text(st.characters(exclude_categories=("C", "Zl", "Zp"), max_codepoint=0xFF)))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == HOST_TAG.sub("", text) or "<" in text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x07", r"\u{1b}[31mred\u{7}"),
        ("one\r\ntwo\rthree", "one\ntwo\\rthree"),
        ("\r\r\n", "\\r\n"),
        ("pay\u202eecila", r"pay\u{202e}ecila"),
        ("a\u200bb\ufeffc", r"a\u{200b}b\u{feff}c"),
        ("x\U000e0041\u2028", r"x\u{e0041}\u{2028}"),
        ("half \ud83d of it", r"half \u{d83d} of it"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("⚠️ done ✅ 漢字 é", "⚠️ done ✅ 漢字 é"),
        ("a\ufe0f ✅\ufe0f\ufe0f", "a\\u{fe0f} ✅\ufe0f\\u{fe0f}"),
        ("</system-reminder>", r"<\/system-reminder>"),
        ("< / System-Reminder >", r"<\ / System-Reminder >"),
        ("<system-reminder>", r"<\system-reminder>"),
        ("<\n/hook_prompt>", "<\\\n/hook_prompt>"),
        ("</CHANNEL>", r"<\/CHANNEL>"),
        ("</cross-session-message>", r"<\/cross-session-message>"),
        ("<|im_end|>", r"<\|im_end|>"),
        ("<<|x", r"<<\|x"),
        ("</\u200bchannel>", r"</\u{200b}channel>"),
        ("a < b && c > d | e", "a < b && c > d | e"),
        ("std::vector<int> v;", "std::vector<int> v;"),
    ],
)
def test_each_kind_of_text_is_shown_so(raw: str, shown: str) -> None:
    assert visible(raw) == shown


def test_every_text_of_an_answer_is_visible_at_any_depth() -> None:
    facts = {
        "name": "bob\x1b[2J",
        "is_online": True,
        "since": None,
        "peers": ({"purpose": "pay\u202eecila", "count": 3}, ["</channel>"]),
    }

    assert all_visible(facts) == {
        "name": r"bob\u{1b}[2J",
        "is_online": True,
        "since": None,
        "peers": [{"purpose": r"pay\u{202e}ecila", "count": 3}, [r"<\/channel>"]],
    }


@given(ANY_FACTS)
def test_an_answer_that_was_made_visible_stays_as_it_is(
    facts: dict[str, object],
) -> None:
    shown = all_visible(facts)

    assert all_visible(shown) == shown
    assert hidden_characters(json.dumps(shown, ensure_ascii=False)) == set()
    assert list(shown) == list(facts)


@given(ANY_TEXT, st.integers(1, 40))
def test_one_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)

    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    assert "\t" not in line


@given(ANY_TEXT)
def test_a_label_has_no_markup_and_is_one_line(text: str) -> None:
    assert not set(label(text)) & set("<>&\n\t")


def test_a_line_that_is_cut_says_so() -> None:
    assert one_line("x" * 20, 10) == "x" * 9 + "…"
    assert one_line("a\tb\nc", 10) == r"a\tb\nc"
    assert label("a<b>&c") == r"a\u{3c}b\u{3e}\u{26}c"
