"""A page in parts: every text once and in order, each part within its limit."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.reading import Page, fitted

BODIES = st.builds(
    lambda letter, count: letter * count,
    st.sampled_from(["a", "<", "漢", "🙂", "ab\n"]),
    st.integers(1, 300),
)
NOTE = "Their words."


def page_of(bodies: list[str], after: int) -> dict[str, Any]:
    """What the server would answer for these, from a cursor on."""
    messages = [
        {"sequence": number, "message": body}
        for number, body in enumerate(bodies, start=1)
        if number > after
    ]
    cursor = messages[-1]["sequence"] if messages else after
    return {"messages": messages, "next_cursor": cursor, "note": NOTE}


def within(limit: int) -> Any:
    def fits(page: Page) -> bool:
        return len(msgspec.json.encode(page)) <= limit

    return fits


def test_a_page_that_fits_is_shown_as_it_is() -> None:
    page = page_of(["one", "two"], 0)

    assert fitted(page, 0, 0, within(1_000)) == page


def test_an_empty_page_is_shown_as_it_is() -> None:
    page = page_of([], 7)

    assert fitted(page, 7, 3, within(1)) == page


def test_messages_that_do_not_fit_are_left_for_the_next_page() -> None:
    bodies = [letter * 100 for letter in "abc"]

    shown = fitted(page_of(bodies, 0), 0, 0, within(400))

    assert [each["message"] for each in shown["messages"]] == bodies[:2]
    assert shown["next_cursor"] == 2
    assert "read on with after=2" in shown["note"]


def test_a_message_that_does_not_fit_says_where_to_go_on() -> None:
    shown = fitted(page_of(["a" * 500], 0), 0, 100, within(300))

    (message,) = shown["messages"]
    end = 100 + len(message["message"])
    assert shown["next_cursor"] == 0
    assert f"from character 100 to {end} of 500" in shown["note"]
    assert f"after=0 and start={end}." in shown["note"]


@given(st.lists(BODIES, max_size=6), st.integers(230, 2_000))
def test_reading_on_shows_every_text_whole_and_once(
    bodies: list[str], limit: int
) -> None:
    read, after, start = [""] * len(bodies), 0, 0
    while after < len(bodies):
        shown = fitted(page_of(bodies, after), after, start, within(limit))
        assert within(limit)(shown)
        for message in shown["messages"]:
            read[message["sequence"] - 1] += message["message"]
        is_part = shown["next_cursor"] == after
        start = start + len(shown["messages"][0]["message"]) if is_part else 0
        after = shown["next_cursor"]

    assert read == bodies


@given(st.lists(BODIES, min_size=1, max_size=6))
def test_every_part_shows_something(bodies: list[str]) -> None:
    shown = fitted(page_of(bodies, 0), 0, 0, within(0))

    (message,) = shown["messages"]
    assert len(message["message"]) == 1
