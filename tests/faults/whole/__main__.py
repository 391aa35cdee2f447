"""Both machines for a set time: `python -m tests.faults.whole SECONDS`.

Plays scripts at random, in turn for mail and for what is sent. A script that
breaks a promise is made as short as it can be and printed, once for each kind of
break; the exit code is then 1.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import trio
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from bridge.clock import SystemClock
from tests.faults import test_whole_outbox, test_whole_system
from tests.faults.whole.events import Event, written
from tests.faults.whole.host import Codex, codex_process
from tests.faults.whole.playing import play

_AT_ONCE = 50
MACHINES = {
    "mail": test_whole_system.SCRIPTS,
    "outbox": test_whole_outbox.SCRIPTS,
}


class Search:
    """What was played and what it broke, until the time is over."""

    def __init__(self, codex: Codex, seconds: float) -> None:
        self._codex = codex
        self._clock = SystemClock()
        self._until = self._clock.running() + seconds
        self.played = 0
        self.broken: set[str] = set()

    @property
    def is_over(self) -> bool:
        """The time has passed."""
        return self._clock.running() >= self._until

    def play(self, scripts: st.SearchStrategy[list[Event]], number: int) -> None:
        """Some scripts, another lot for each number."""

        @seed(number)
        @settings(
            max_examples=_AT_ONCE,
            derandomize=False,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(scripts)
        def some(script: list[Event]) -> None:
            if not self.is_over:
                self._try(script)

        some()

    def _try(self, script: Sequence[Event]) -> None:
        self.played += 1
        what = self._break(script)
        if what and what not in self.broken:
            self.broken.add(what)
            least = self._least(script, what)
            print(f"{what}\n{written(least)}", flush=True)  # noqa: T201

    def _break(self, script: Sequence[Event]) -> str:
        """The kind of promise that it breaks, or nothing."""
        try:
            play(script, self._codex)
        except Exception as error:
            return re.sub(r"\d+", "N", f"{type(error).__name__}: {error}")[:100]
        return ""

    def _least(self, script: Sequence[Event], what: str) -> Sequence[Event]:
        """Without every event that it does not need."""
        place = 0
        while place < len(script):
            shorter = [*script[:place], *script[place + 1 :]]
            if self._break(shorter) == what:
                script = shorter
            else:
                place += 1
        return script


def main(seconds: float) -> int:
    """Play both machines in turn; the exit code."""
    # As pytest-trio does: the same script runs its tasks in the same order.
    trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    with (
        tempfile.TemporaryDirectory() as folder,
        codex_process(Path(folder)) as codex,
    ):
        search = Search(codex, seconds)
        start = int.from_bytes(SystemClock().random_bytes(4))
        for number in count(start):
            for scripts in MACHINES.values():
                search.play(scripts, number)
            if search.is_over:
                break
    print(f"{search.played} scripts, {len(search.broken)} kinds of break")  # noqa: T201
    return 1 if search.broken else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
