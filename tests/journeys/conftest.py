"""What every journey stands on: a scratch computer, and the hook client built once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.hooks.conftest import HOOKS, compile_ask, with_first_line
from tests.journeys.rig.computer import Computer, computer_in


@pytest.fixture(scope="session")
def built_ask(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hook client: in C where there is a compiler, else its twin."""
    folder = tmp_path_factory.mktemp("ask")
    compiled = compile_ask(folder)
    if compiled is None:
        compiled = folder / "ask"
        with_first_line(HOOKS / "ask.py", compiled)
    return compiled


@pytest.fixture
async def computer(tmp_path: Path, built_ask: Path) -> AsyncIterator[Computer]:
    """A computer on which nothing runs yet; each use of it is a canary test.

    Fault row 45: at the end of each journey nothing that it left, and no process
    that still runs, shows a message or a token.
    """
    async with computer_in(tmp_path, built_ask) as made:
        yield made
        assert made.canaries.look() == []
