"""The server's fixtures: a clock moved by hand, and a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridge.server.limits import Settings
from tests.fakes.clock import FakeClock
from tests.fakes.message_server import Served, served


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
async def server(
    tmp_path: Path, settings: Settings, fake_clock: FakeClock
) -> AsyncIterator[Served]:
    async with served(tmp_path, settings, fake_clock) as running:
        yield running
