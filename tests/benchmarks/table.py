"""The table: what was measured, its limit, and whether it was kept."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from msgspec import Struct


class Row(Struct, frozen=True):
    """One line; without a limit it stands for comparison only.

    `figure` and `limit` are in `unit`; `beside` is what else was measured.
    """

    what: str
    figure: float
    unit: str
    limit: float | None = None
    beside: str = ""

    @property
    def verdict(self) -> str:
        """ok, MISSED, or nothing for a line without a limit."""
        if self.limit is None:
            return ""
        return "ok" if self.figure <= self.limit else "MISSED"


def median(samples: Sequence[float]) -> float:
    """The middle one: a busy moment moves it little."""
    return statistics.median(samples)


def ratio(what: str, of: float, to: float, limit: float | None, beside: str) -> Row:
    """How many times as long as something else in the same run."""
    return Row(what, of / to, "x", limit, beside)


def milliseconds(value: float) -> str:
    """Such as `0.82 ms`."""
    return f"{value:.2f} ms"


def rendered(rows: Sequence[Row]) -> str:
    """The whole table."""
    cells = [("", "limit", "figure", "", "")]
    cells += [
        (
            row.what,
            "" if row.limit is None else f"<= {row.limit:g} {row.unit}",
            f"{row.figure:.2f} {row.unit}",
            row.verdict,
            row.beside,
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)


def missed(rows: Sequence[Row]) -> list[str]:
    """The lines whose limit was not kept."""
    return [row.what for row in rows if row.verdict == "MISSED"]
