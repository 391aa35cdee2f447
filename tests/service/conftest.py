"""A scratch computer, with and without a systemd of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.capabilities import need_user_systemd
from tests.journeys.conftest import built_ask
from tests.journeys.rig.computer import Computer, computer_in
from tests.service.rig.serviced import Serviced, serviced

__all__ = ["built_ask"]


@pytest.fixture
async def computer(tmp_path: Path, built_ask: Path) -> AsyncIterator[Computer]:
    """A computer on which nothing runs yet; its state folder has an odd name."""
    folder = tmp_path / 'one $x 100% "q" \\y'
    folder.mkdir()
    async with computer_in(folder, built_ask) as made:
        yield made


@pytest.fixture
async def house(computer: Computer) -> AsyncIterator[Serviced]:
    """That computer with a person's systemd."""
    need_user_systemd()
    async with serviced(computer) as made:
        yield made
