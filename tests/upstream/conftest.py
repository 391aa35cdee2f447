"""The upstream room's fixtures: a clock, and callers of a scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.fakes.clock import FakeClock
from tests.upstream.callers import Callers
from tests.upstream.sending import Place


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def calling(fake_clock: FakeClock) -> AsyncIterator[Callers]:
    async with AsyncExitStack() as stack:
        yield Callers(stack, fake_clock)


@pytest.fixture
def place(calling: Callers, fake_clock: FakeClock) -> Place:
    return Place(calling, fake_clock)
