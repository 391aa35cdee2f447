"""How long to wait before the server is asked again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.reconnect import (
    CAP_S,
    HEALTHY_S,
    RETRY_AFTER_CAP_S,
    Backoff,
    failed,
    retry_after,
)

NOON = 1_764_504_000.0  # Sun, 30 Nov 2025 12:00:00 GMT
ALMOST_ONE = 1 - 2**-53


def test_the_longest_wait_doubles_to_the_cap() -> None:
    backoff, waits = Backoff(), []
    for _ in range(8):
        backoff, wait_s = failed(backoff, healthy_for_s=0, fraction=1.0)
        waits.append(wait_s)

    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert failed(Backoff(10**6), 0, 1.0)[1] == CAP_S


def test_the_wait_is_anywhere_between_nothing_and_the_longest() -> None:
    assert failed(Backoff(3), 0, 0.0)[1] == 0
    assert failed(Backoff(3), 0, 0.25)[1] == 1


def test_a_minute_of_health_starts_from_the_beginning() -> None:
    assert failed(Backoff(9), HEALTHY_S, 1.0) == (Backoff(1), 0.5)
    assert failed(Backoff(9), HEALTHY_S - 1, 1.0) == (Backoff(10), 30)


def test_the_servers_floor_is_obeyed_up_to_its_cap() -> None:
    assert failed(Backoff(), 0, 0.0, retry_after_s=20)[1] == 20
    assert failed(Backoff(), 0, 1.0, retry_after_s=20)[1] == 20.5
    assert failed(Backoff(), 0, 0.0, retry_after_s=1e9)[1] == RETRY_AFTER_CAP_S
    assert failed(Backoff(), 0, 0.0, retry_after_s=-5)[1] == 0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        (" 120 ", 120),
        ("1000000000", 900),
        ("9" * 5_000, 900),
        ("Sun, 30 Nov 2025 12:00:30 GMT", 30),
        ("Sun, 30 Nov 2025 12:00:30 -0000", 30),
        ("Sun, 30 Nov 2025 13:00:30 +0100", 30),
        ("Sun, 30 Nov 2025 11:00:00 GMT", 0),
        ("Fri, 30 Nov 2035 12:00:00 GMT", 900),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("", None),
        ("Sun, 99 Nov 2025 12:00:00 GMT", None),
    ],
)
def test_a_retry_after_is_seconds_a_date_or_nothing(
    value: str, seconds: float | None
) -> None:
    assert retry_after(value, at=NOON) == seconds


def test_a_date_counts_from_the_servers_own_clock() -> None:
    date = "Sun, 30 Nov 2025 12:00:30 GMT"
    server_now = "Sun, 30 Nov 2025 12:00:10 GMT"

    assert retry_after(date, at=0.0, server_date=server_now) == 20
    assert retry_after(date, at=NOON, server_date="nonsense") == 30


@given(
    st.integers(min_value=0, max_value=10**9),
    st.floats(min_value=0, max_value=1e6),
    st.floats(min_value=0, max_value=ALMOST_ONE),
    st.none() | st.floats(allow_nan=False, min_value=-1e12, max_value=1e12),
)
def test_a_wait_stays_within_its_bounds(
    failures: int, healthy_for_s: float, fraction: float, floor_s: float | None
) -> None:
    after, wait_s = failed(Backoff(failures), healthy_for_s, fraction, floor_s)

    floor = min(max(floor_s or 0.0, 0.0), RETRY_AFTER_CAP_S)
    assert floor <= wait_s <= floor + CAP_S
    assert 1 <= after.failures <= failures + 1


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d+ Nov \d+ \d+:\d+:\d+ [+-]?\w+"))
def test_any_header_is_a_wait_in_bounds_or_nothing(value: str) -> None:
    wait_s = retry_after(value, at=NOON, server_date=value[::-1])

    assert wait_s is None or 0 <= wait_s <= RETRY_AFTER_CAP_S
