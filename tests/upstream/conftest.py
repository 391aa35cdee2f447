"""The upstream room's fixtures: a clock, and callers of a scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from bridge.upstream.api import Caller
from bridge.upstream.clients import ServerAddress, open_server
from bridge.upstream.credentials import Credential, FixedToken
from tests.fakes.clock import FakeClock


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


class Callers:
    """Makes callers of scripted servers; closes them at the end of the test."""

    def __init__(self, stack: AsyncExitStack, clock: FakeClock) -> None:
        self._stack = stack
        self._clock = clock

    async def __call__(
        self, transport: httpx.AsyncBaseTransport, credential: Credential | None = None
    ) -> Caller:
        address = ServerAddress("http://bridge")
        server = await self._stack.enter_async_context(open_server(address, transport))
        return Caller(server, credential or FixedToken("cnry-token"), self._clock)


@pytest.fixture
async def calling(fake_clock: FakeClock) -> AsyncIterator[Callers]:
    async with AsyncExitStack() as stack:
        yield Callers(stack, fake_clock)
