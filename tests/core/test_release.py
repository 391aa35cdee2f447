"""The server's fresh word, counted on the clock that runs during suspend."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import MessageId
from bridge.core.release import (
    FRESH_S,
    RETRACTED_KEPT,
    Releases,
    alive,
    arrived,
    released,
    resumed,
    retracted,
)

ONE, TWO = MessageId("msg-1"), MessageId("msg-2")


def test_nothing_is_shown_without_a_word() -> None:
    assert not Releases().is_fresh(ONE, 1, now=0.0)


def test_an_arrival_releases_its_message_for_thirty_seconds() -> None:
    releases = arrived(Releases(), [ONE], now=100.0)

    assert releases.is_fresh(ONE, 1, now=100.0 + FRESH_S)
    assert not releases.is_fresh(ONE, 1, now=100.1 + FRESH_S)
    assert not releases.is_fresh(TWO, 1, now=100.0)


def test_a_heartbeat_renews_the_word_up_to_its_sequence() -> None:
    releases = alive(arrived(Releases(), [ONE], now=100.0), through=5, now=120.0)

    assert releases.is_fresh(ONE, 5, now=150.0)
    assert not releases.is_fresh(TWO, 6, now=120.0)


def test_a_lower_heartbeat_does_not_shorten_a_higher_one() -> None:
    releases = alive(alive(Releases(), 9, now=100.0), 5, now=110.0)

    assert releases.is_fresh(ONE, 9, now=130.0)
    assert not releases.is_fresh(ONE, 9, now=131.0)
    assert releases.is_fresh(ONE, 5, now=140.0)


def test_what_was_retracted_is_never_released_again() -> None:
    releases = retracted(arrived(Releases(), [ONE], now=100.0), [ONE])
    releases = alive(arrived(releases, [ONE], now=101.0), 9, now=101.0)

    assert not releases.is_fresh(ONE, 1, now=101.0)
    assert not resumed(releases).is_fresh(ONE, 1, now=101.0)
    assert releases.is_fresh(TWO, 2, now=101.0)


def test_what_was_retracted_long_ago_takes_no_room_for_ever() -> None:
    releases = Releases()
    for number in range(3):
        ids = [MessageId(f"msg-{number}-{each}") for each in range(1_000)]
        releases = retracted(arrived(releases, [ids[0]], now=100.0), ids)

    assert len(releases.retracted) == RETRACTED_KEPT == 2_000
    assert not releases.is_fresh(MessageId("msg-1-0"), 1, now=100.0)
    assert not releases.is_fresh(MessageId("msg-2-0"), 1, now=100.0)


def test_an_answer_counts_from_its_request() -> None:
    releases = released(Releases(), [ONE, TWO], asked_at=100.0)

    assert releases.is_fresh(TWO, 2, now=130.0)
    assert not releases.is_fresh(TWO, 2, now=130.5)


def test_an_older_answer_does_not_shorten_a_newer_word() -> None:
    releases = released(arrived(Releases(), [ONE], now=110.0), [ONE], asked_at=100.0)

    assert releases.is_fresh(ONE, 1, now=140.0)


def test_a_resume_drops_every_word() -> None:
    releases = alive(arrived(Releases(), [ONE], now=100.0), 9, now=100.0)

    assert not resumed(releases).is_fresh(ONE, 1, now=100.0)


def test_old_words_are_not_kept() -> None:
    releases = arrived(arrived(Releases(), [ONE], now=0.0), [TWO], now=100.0)
    assert set(releases.single) == {TWO}

    releases = alive(alive(releases, 9, now=100.0), 5, now=200.0)
    assert len(releases.words) == 1


def test_a_word_that_is_renewed_keeps_no_old_ones() -> None:
    releases = arrived(Releases(), [ONE, TWO], now=0.0)
    for now in range(0, 100, 10):
        releases = arrived(releases, [ONE], now=float(now))

    assert list(releases.single) == [ONE]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["arrive", "alive", "retract", "resume"]),
            st.integers(min_value=1, max_value=4),
            st.floats(min_value=0, max_value=40),
        ),
        max_size=30,
    ),
    st.integers(min_value=1, max_value=4),
)
def test_fresh_is_exactly_what_was_said_within_thirty_seconds(
    story: list[tuple[str, int, float]], sequence: int
) -> None:
    now, releases = 0.0, Releases()
    said: list[float] = []
    is_retracted = False
    for what, number, passed in story:
        now += passed
        match what:
            case "arrive":
                releases = arrived(releases, [MessageId(f"msg-{number}")], now)
                said += [now] if number == sequence else []
            case "alive":
                releases = alive(releases, number, now)
                said += [now] if number >= sequence else []
            case "retract":
                releases = retracted(releases, [MessageId(f"msg-{number}")])
                is_retracted = is_retracted or number == sequence
            case _:
                releases = resumed(releases)
                said = []

        expected = not is_retracted and any(now - at <= FRESH_S for at in said)
        message_id = MessageId(f"msg-{sequence}")
        assert releases.is_fresh(message_id, sequence, now) == expected
