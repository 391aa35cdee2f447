"""Which hooks are the second word of one event."""

from __future__ import annotations

from bridge.core.records import ProcessKey
from bridge.driver.twins import TWIN_S, Twins

CHAT = ProcessKey("boot", 7, 100)
OTHER = ProcessKey("boot", 8, 100)


def test_the_second_word_of_one_event_is_a_twin() -> None:
    twins = Twins()

    heard = [twins.has_heard(CHAT, 1, at) for at in (10.0, 10.1, 11.9)]

    assert heard == [False, True, True]


def test_another_event_or_process_is_none() -> None:
    twins = Twins()
    twins.has_heard(CHAT, 1, 10.0)

    assert not twins.has_heard(CHAT, 2, 10.0)
    assert not twins.has_heard(OTHER, 1, 10.0)


def test_the_same_words_are_an_event_of_their_own_after_two_seconds() -> None:
    twins = Twins()
    twins.has_heard(CHAT, 1, 10.0)
    twins.has_heard(CHAT, 1, 11.0)

    assert not twins.has_heard(CHAT, 1, 10.0 + TWIN_S)
