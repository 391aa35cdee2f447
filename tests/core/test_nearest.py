"""A name that nobody has is answered with those it may have meant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bridge.core.nearest import SHOWN, nearest_names

NAMES = st.text("abcdeAB.-_", min_size=1, max_size=8)


def test_a_slip_finds_its_name() -> None:
    assert nearest_names("carrol", ["alice", "Carol", "bob"]) == ("Carol",)
    assert nearest_names("REVIEWR", ["reviewer", "review"]) == ("reviewer", "review")


def test_a_name_far_from_all_finds_none() -> None:
    assert nearest_names("zzz", ["alice", "bob"]) == ()
    assert nearest_names("alice", []) == ()


@given(NAMES, st.lists(NAMES, max_size=12))
def test_only_given_names_are_found(wanted: str, names: list[str]) -> None:
    found = nearest_names(wanted, names)

    assert set(found) <= set(names)
    assert len(found) <= SHOWN


@given(st.lists(NAMES, min_size=1, max_size=12))
def test_the_name_itself_comes_first(names: list[str]) -> None:
    assert nearest_names(names[0].upper(), names)[0].lower() == names[0].lower()
