"""The store's fixtures: a private folder, a clock, an open journal, its rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bridge.store.journal import Journal
from tests.fakes.clock import FakeClock
from tests.store.real_file import RealFile, real_file


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


@pytest.fixture(scope="module")
def any_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealFile]:
    """One file for all examples of a property; each empties it first."""
    with real_file(tmp_path_factory.mktemp("rows") / "journal.sqlite3") as opened:
        yield opened


@pytest.fixture
def file(any_file: RealFile) -> RealFile:
    any_file.empty()
    return any_file
