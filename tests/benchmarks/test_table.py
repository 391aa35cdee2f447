"""A limit is kept when the figure is at it, and missed when it is over it."""

from __future__ import annotations

import pytest

from tests.benchmarks.table import Row, missed, ratio, rendered


@pytest.mark.parametrize(
    ("figure", "limit", "verdict"),
    [(1.5, 1.5, "ok"), (1.51, 1.5, "MISSED"), (9.0, None, "")],
)
def test_a_figure_is_judged_by_its_limit(
    figure: float, limit: float | None, verdict: str
) -> None:
    assert Row("a hook", figure, "x", limit).verdict == verdict


def test_what_was_missed_is_named() -> None:
    rows = [Row("a", 1, "x", 2), Row("b", 3, "x", 2), Row("c", 3, "x")]

    assert missed(rows) == ["b"]


def test_a_ratio_is_shown_with_its_limit_and_what_stands_beside_it() -> None:
    text = rendered([ratio("a hook", 3.0, 2.0, 2.0, "3 ms")])

    assert text.splitlines()[1].split("  ") == [
        "a hook",
        "<= 2 x",
        "1.50 x",
        "ok",
        "3 ms",
    ]
