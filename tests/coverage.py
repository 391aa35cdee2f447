"""Measures each module of the core and the store by its own tests alone, by branch.

    python -m tests.coverage

Owns the check that each is covered whole. The tests run once; what runs is noted
under the name of the test file that runs it, and what a module does when it is
imported under the module's own name. So a module is never credited with what
another module or another module's tests do with it. Its own tests are
`tests/<room>/test_<module>.py` and `tests/<room>/test_<module>_*.py`.

Prints a table. Ends with 1 when a test failed, when a module has no test file of
its own, or when one line or branch of a module did not run.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from coverage import Coverage
from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("core", "store")


class Module(Struct, frozen=True):
    """One module, its source, and the test files that are its own."""

    name: str
    path: Path
    tests: tuple[Path, ...]


class Row(Struct, frozen=True):
    """One line of the table: per cent of lines and branches, and what is missing.

    `missing` is empty only for a module that is covered whole.
    """

    module: Module
    percent: float
    missing: str

    def text(self) -> str:
        """The line as it is printed."""
        return f"{self.module.name:<28} {self.percent:>5.1f} %  {self.missing}".rstrip()


# ---- what is measured ----------------------------------------------------------


def modules_of(root: Path) -> list[Module]:
    """Every module of the measured rooms that has any code, by name."""
    return [
        Module(f"bridge.{room}.{path.stem}", path, own_tests(root / "tests", path))
        for room in ROOMS
        for path in sorted((root / "bridge" / room).glob("*.py"))
        if path.read_text().strip()
    ]


def own_tests(folder: Path, path: Path) -> tuple[Path, ...]:
    """The test files whose names say that they are about this module."""
    room = folder / path.parent.name
    more = sorted(room.glob(f"test_{path.stem}_*.py"))
    return tuple(
        file for file in (room / f"test_{path.stem}.py", *more) if file.exists()
    )


def in_order_of_need(modules: Sequence[Module]) -> list[str]:
    """Their names, each after those that it imports."""
    names = {module.name for module in modules}
    needs = {module.name: names & set(_imports(module.path)) for module in modules}
    return list(TopologicalSorter(needs).static_order())


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# ---- one run ---------------------------------------------------------------------


class NamedByFile:
    """Tells coverage whose code runs: that of a test file, or nobody's."""

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage

    @contextmanager
    def _in(self, name: str) -> Iterator[None]:
        self._coverage.switch_context(name)
        try:
            yield
        finally:
            self._coverage.switch_context("nobody")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Called by pytest to import a test file, among others."""
        with self._in(str(collector.path)):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item
    ) -> Generator[None, object, object]:
        """Called by pytest for one test with its fixtures."""
        with self._in(str(item.path)):
            return (yield)


def measure(root: Path) -> tuple[int, list[Row]]:
    """Runs the rooms' tests once: pytest's exit code, and the table."""
    modules = modules_of(root)
    coverage = Coverage(
        data_file=None,
        branch=True,
        source=[str(root / "bridge" / room) for room in ROOMS],
        config_file=str(ROOT / "pyproject.toml"),
    )
    # The quickest core of newer Pythons notes a line only for the first that runs it.
    coverage.set_option("run:core", "ctrace")
    coverage.start()
    for name in in_order_of_need(modules):
        coverage.switch_context(name)
        importlib.import_module(name)
    folders = [str(root / "tests" / room) for room in ROOMS]
    options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not crash"]
    code = pytest.main([*options, *folders], plugins=[NamedByFile(coverage)])
    coverage.stop()
    return int(code), [_row(coverage, module) for module in modules]


def _row(coverage: Coverage, module: Module) -> Row:
    own = [module.name, *map(str, module.tests)]
    coverage.get_data().set_query_contexts([f"^{re.escape(name)}$" for name in own])
    _, lines, _, unseen, unseen_text = coverage.analysis2(str(module.path))
    branches = coverage.branch_stats(str(module.path))
    ways = sum(every for every, _ in branches.values())
    taken = sum(some for _, some in branches.values())
    partial = [line for line, (every, some) in branches.items() if some < every]
    whole = len(lines) + ways
    percent = 100.0 * (len(lines) - len(unseen) + taken) / whole if whole else 100.0
    reasons = (
        "" if module.tests else "no test file of its own",
        f"lines {unseen_text}" if unseen else "",
        f"branches from {', '.join(map(str, partial))}" if partial else "",
    )
    return Row(module, percent, "; ".join(filter(None, reasons)))


def main(root: Path = ROOT) -> int:
    """Prints the table; 0 when the tests passed and every module is covered whole."""
    code, rows = measure(root.resolve())
    missing = sum(bool(row.missing) for row in rows)
    lines = [row.text() for row in rows]
    last = f"{len(rows)} modules, {missing} not covered whole by their own tests"
    sys.stdout.write("\n".join(["", *lines, last, ""]))
    return 1 if code or missing else 0


if __name__ == "__main__":
    sys.exit(main())
