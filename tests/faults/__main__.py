"""Runs every test that the fault matrix names, and every other serial one.

First, two at a time, what `make test` runs so as well; then, one at a time, what
kills or traces real processes or needs a computer of its own.

    python -m tests.faults [what pytest takes]

With CI=true a test that was skipped fails the run: there nothing may be missing.
"""

from __future__ import annotations

import os
import sys

import pytest

from tests.faults.matrix import named_tests

_Reporter = pytest.TerminalReporter
# No row needs all of them, and they too are slow and run one at a time.
_ALSO = ("tests/service/test_run_by_systemd.py",)


class Witness:
    """Counts what was skipped, with its reason."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest for each part of each test."""
        if report.skipped:
            self.skipped.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The last word on the exit code."""
        if self.skipped and os.environ.get("CI") == "true":
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Says what CI will not let pass."""
        if self.skipped:
            terminalreporter.write_line("Skipped, which CI does not allow:")
            for name in self.skipped:
                terminalreporter.write_line(f"  {name}")


def main(arguments: list[str]) -> int:
    """The first exit code of pytest that is not 0; both parts are run."""
    together = ("-m", "not crash", "-n", "2", "--dist", "loadfile")
    codes = [_run(*together, *arguments), _run("-m", "crash", *arguments)]
    return next(filter(None, codes), 0)


def _run(*arguments: str) -> int:
    tests = (*named_tests(), *_ALSO)
    return int(pytest.main(["-q", *arguments, *tests], plugins=[Witness()]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
