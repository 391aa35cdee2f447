"""The grammar and the limits of names and ids, and what a fresh id says."""

from __future__ import annotations

import itertools
import string
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import (
    NAME_LIMIT,
    SUBMISSION_ID_LIMIT,
    default_name,
    fold_name,
    is_name,
    is_submission_id,
    new_id,
    uuid7,
)

MILLISECONDS = st.integers(0, 2**48 - 1)
NOISE = st.binary(min_size=10, max_size=10)
BASE32 = set("abcdefghijklmnopqrstuvwxyz234567")
LETTERS_AND_DIGITS = set(string.ascii_letters + string.digits)
NEARLY_NAMES = st.text(
    st.sampled_from([*"aZ09._- \n\0/:@", "é", "\u0660", "\u212a"]), max_size=66
)

# ---- fresh ids -----------------------------------------------------------------


def test_the_example_of_the_rfc() -> None:
    """RFC 9562, appendix A.6."""
    noise = bytes.fromhex("0cc318c4dc0c0c07398f")

    made = uuid7(1_645_557_742.0, noise)

    assert made == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@given(MILLISECONDS, NOISE)
def test_every_fresh_id_is_a_uuid_of_version_7(milliseconds: int, noise: bytes) -> None:
    found = uuid.UUID(uuid7(milliseconds / 1000, noise))

    assert found.version == 7
    assert found.variant == uuid.RFC_4122


@given(MILLISECONDS, NOISE)
def test_all_random_bits_but_six_are_kept(milliseconds: int, noise: bytes) -> None:
    found = uuid.UUID(uuid7(milliseconds / 1000, noise))
    kept = (2**80 - 1) & ~(0xF << 76) & ~(0x3 << 62)

    assert found.int & kept == int.from_bytes(noise) & kept


@given(st.integers(0, 2**41), st.integers(1, 2**41), NOISE, NOISE)
def test_a_later_id_sorts_after_an_earlier_one(
    start: int, later: int, one: bytes, other: bytes
) -> None:
    """Whole milliseconds of a wall time below the year 2100."""
    assert uuid7(start / 1000, one) < uuid7((start + later) / 1000 + 0.0005, other)


def test_bytes_past_the_tenth_change_nothing() -> None:
    assert uuid7(1.0, b"a" * 10) == uuid7(1.0, b"a" * 10 + b"b" * 6)


def test_a_time_past_48_bits_of_milliseconds_is_still_an_id() -> None:
    assert uuid.UUID(uuid7(2**48 / 1000, bytes(10))).version == 7


@given(st.sampled_from(["msg", "inbox", "att", "agent", "offer", "sub"]), NOISE)
def test_a_new_id_is_its_prefix_and_a_uuid(prefix: str, noise: bytes) -> None:
    found, _, rest = new_id(prefix, 1_796_000_000.0, noise).partition("-")

    assert found == prefix
    assert rest == uuid7(1_796_000_000.0, noise)


# ---- names ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["a", "Z", "0", "bob", "claude-k7q2", "a.b_c-d", "1.", "a" * NAME_LIMIT]
)
def test_a_name(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "-a", ".a", "_a", "a b", "a\n", "\na", "a/b", "agent:bob", "a@b", "a\0",
        "\u00e9", "bob\u0301", "\u212aelvin", "\u0661", "a" * (NAME_LIMIT + 1),
    ],
)  # fmt: skip
def test_no_name(text: str) -> None:
    assert not is_name(text)


@given(NEARLY_NAMES)
def test_a_name_is_1_to_64_plain_characters_and_begins_with_a_letter_or_digit(
    text: str,
) -> None:
    plain = set(text) <= LETTERS_AND_DIGITS | set("._-")
    expected = plain and 1 <= len(text) <= 64 and text[0] in LETTERS_AND_DIGITS

    assert is_name(text) is expected


@given(st.text(st.characters(codec="ascii")))
def test_names_that_differ_in_case_only_are_the_same(text: str) -> None:
    assert fold_name(text.upper()) == fold_name(text.lower()) == fold_name(text)


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold_name(fold_name(text)) == fold_name(text)


def test_letters_beyond_ascii_are_never_folded_into_ascii() -> None:
    """The Kelvin sign is no k, and no other alphabet can take a plain name."""
    assert fold_name("\u212aelvin") == "\u212aelvin"
    assert fold_name("\u0130") == "\u0130"


# ---- submission ids --------------------------------------------------------------


@given(st.text(st.characters(codec="ascii"), max_size=130) | st.text(max_size=5))
def test_a_submission_id_is_1_to_128_printable_ascii_characters(text: str) -> None:
    printable = all(" " <= letter <= "~" for letter in text)

    assert is_submission_id(text) is (printable and 1 <= len(text) <= 128)


def test_the_longest_submission_id() -> None:
    assert is_submission_id("~" * SUBMISSION_ID_LIMIT)
    assert not is_submission_id("~" * (SUBMISSION_ID_LIMIT + 1))
    assert not is_submission_id("sub-1\n")


# ---- default names ---------------------------------------------------------------


def nobody(_: str) -> bool:
    return False


@given(st.text(min_size=1))
def test_a_default_name_is_the_provider_and_four_letters(session_id: str) -> None:
    name = default_name("claude", session_id, nobody)

    provider, _, letters = name.partition("-")
    assert provider == "claude"
    assert len(letters) == 4
    assert set(letters) <= BASE32
    assert is_name(name)


def test_a_session_has_the_same_default_name_for_ever() -> None:
    """Written out, so that no later version can change it unnoticed."""
    session_id = "6720d3c6-2e01-405e-aff8-4c79d2bc7444"

    assert default_name("claude", session_id, nobody) == "claude-dipl"
    assert default_name("codex", session_id, nobody) == "codex-tyw7"


@given(st.sampled_from(["claude", "codex", "script"]), st.integers(0, 60))
def test_each_name_that_is_taken_makes_it_one_letter_longer(
    provider: str, count: int
) -> None:
    asked: list[str] = []

    def is_taken(name: str) -> bool:
        asked.append(name)
        return len(asked) <= count

    name = default_name(provider, "session-1", is_taken)

    assert [len(each) - len(provider) - 1 for each in asked] == list(
        range(4, 4 + len(asked))
    )
    assert all(each.startswith(before) for before, each in itertools.pairwise(asked))
    assert name == asked[-1] == fold_name(name)
    assert is_name(name)


def test_when_every_default_name_is_taken_it_is_the_longest() -> None:
    """52 letters are the whole hash; whoever takes the name is told so."""
    name = default_name("claude", "session-1", lambda _: True)

    assert len(name) == len("claude-") + 52
