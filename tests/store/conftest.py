"""The store's fixtures: a private folder, a clock, an open journal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridge.store.journal import Journal
from tests.fakes.clock import FakeClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite3"


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def journal(path: Path, fake_clock: FakeClock) -> AsyncIterator[Journal]:
    async with await Journal.open(path, fake_clock) as opened:
        yield opened
