"""The fault matrix as it is written: its rows, and the tests that they name.

Promises that a line of MATRIX.md that looks like a row is a whole row, or is
refused with its number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
MATRIX = Path(__file__).with_name("MATRIX.md")
LAST = 101
VOID = frozenset({99, 100})
UNFILLED = "TODO"

_COLUMNS = ("row", "fault", "what is true then", "promise", "tests")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+(?:::\w+)?)`")
_PROMISES = re.compile(r"-|P[1-7](, P[1-7])*")


class Row(Struct, frozen=True):
    """One fault; `tests` are pytest's node ids, without brackets."""

    number: int
    fault: str
    outcome: str
    promise: str
    tests: tuple[str, ...]
    is_filled: bool


def read_matrix(text: str) -> list[Row]:
    """Every row in order; raises AssertionError for one that is not whole."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [_row(each) for each in cells if not _is_heading(each)]


def named_tests() -> list[str]:
    """What `make faults` runs: each test once, in the matrix's order."""
    rows = read_matrix(MATRIX.read_text("utf-8"))
    return list(dict.fromkeys(test for row in rows for test in row.tests))


def names_in(path: Path) -> set[str]:
    """The names that pytest knows in a file: functions, classes, their methods."""
    return set(_names(ast.parse(path.read_text("utf-8")).body))


def _is_heading(cells: list[str]) -> bool:
    return tuple(cells) == _COLUMNS or set("".join(cells)) == {"-"}


def _row(cells: list[str]) -> Row:
    assert len(cells) == len(_COLUMNS), f"not a row: {cells}"
    number, fault, outcome, promise, named = cells
    assert all(cells), f"row {number} has an empty cell"
    is_filled = UNFILLED not in cells
    assert not is_filled or _PROMISES.fullmatch(promise), f"row {number}: {promise}"
    tests = _tests(number, named) if is_filled and named != "-" else ()
    return Row(int(number), fault, outcome, promise, tests, is_filled)


def _tests(number: str, named: str) -> tuple[str, ...]:
    found = [_TEST.fullmatch(each.strip()) for each in named.split(",")]
    whole = [match for match in found if match is not None]
    assert len(whole) == len(found), f"row {number} names no test: {named}"
    return tuple(f"{match[1]}::{match[2]}" for match in whole)


def _names(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test_"):
                yield node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield node.name
            yield from (f"{node.name}::{name}" for name in _names(node.body))
        elif isinstance(node, ast.Assign):  # a state machine's TestCase
            yield from (
                target.id
                for target in node.targets
                if isinstance(target, ast.Name) and target.id.startswith("Test")
            )
