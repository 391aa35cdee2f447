"""The fault matrix and the tests agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.matrix import LAST, MATRIX, ROOT, VOID, Row, names_in, read_matrix

ROWS = read_matrix(MATRIX.read_text("utf-8"))
FAULT_TESTS = sorted(Path(__file__).parent.glob("test_*.py"))


def numbers(rows: list[Row]) -> list[str]:
    return [f"row-{row.number}" for row in rows]


def test_every_fault_has_one_row() -> None:
    assert [row.number for row in ROWS] == list(range(1, LAST + 1))


@pytest.mark.parametrize("row", ROWS, ids=numbers(ROWS))
def test_a_row_names_tests_that_exist_unless_its_fault_is_void(row: Row) -> None:
    if row.is_filled:
        assert bool(row.tests) is (row.number not in VOID)
    for test in row.tests:
        path, _, name = test.partition("::")
        assert name in names_in(ROOT / path), f"row {row.number}: no {test}"


@pytest.mark.parametrize("path", FAULT_TESTS, ids=[each.name for each in FAULT_TESTS])
def test_every_fault_test_is_named_by_a_row(path: Path) -> None:
    if path == Path(__file__):
        return
    named = {test for row in ROWS for test in row.tests}
    unnamed = {
        name
        for name in names_in(path)
        if f"{path.relative_to(ROOT)}::{name}" not in named
    }

    assert not unnamed, f"{path.name}: {sorted(unnamed)} stand in no row"


@pytest.mark.parametrize(
    "line",
    [
        "| 1 | a fault | an outcome | P1 |",
        "| 1 | a fault | | P1 | `tests/test_house.py::test_x` |",
        "| 1 | a fault | an outcome | P8 | `tests/test_house.py::test_x` |",
        "| 1 | a fault | an outcome | P1 | tests/test_house.py::test_x |",
        "| 1 | a fault | an outcome | P1 | `tests/test_house.py` |",
    ],
)
def test_a_row_that_is_not_whole_is_refused(line: str) -> None:
    with pytest.raises(AssertionError):
        read_matrix(line)


def test_no_row_waits_to_be_filled() -> None:
    assert [row.number for row in ROWS if not row.is_filled] == []
