"""Callers of scripted servers."""

from __future__ import annotations

from contextlib import AsyncExitStack

import httpx

from bridge.upstream.api import Caller
from bridge.upstream.clients import ServerAddress, open_server
from bridge.upstream.credentials import Credential, FixedToken
from tests.fakes.clock import FakeClock


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
