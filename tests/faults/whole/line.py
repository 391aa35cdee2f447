"""The way from one daemon to the machines' message server, and what breaks on it."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import msgspec
import trio

from tests.faults.whole.answers import failed
from tests.faults.whole.server import MessageServer

_SLOW_S = 12.0


class Line(httpx.AsyncBaseTransport):
    """One daemon's way to the server; a dead daemon's requests go nowhere."""

    def __init__(
        self, server: MessageServer, life: str, is_dead: Callable[[], bool]
    ) -> None:
        self._server = server
        self._life = life
        self._is_dead = is_dead

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See httpx.AsyncBaseTransport."""
        await request.aread()
        await trio.lowlevel.checkpoint()
        if self._is_dead():
            await trio.sleep_forever()
        is_send = request.url.path.endswith("/send")
        kind = self._fault(request, is_send)
        if kind == "unreachable":
            raise httpx.ConnectError("nobody there")
        if kind in ("lost", "slow"):
            reply = self._server.answer(request)
            await trio.sleep(_SLOW_S if kind == "slow" else 0)
            if kind == "lost":
                raise httpx.ReadError("cut")
            return reply
        return failed(kind) if kind else self._server.answer(request)

    def _fault(self, request: httpx.Request, is_send: bool) -> str:
        server = self._server
        kind = server.faults.popleft() if server.faults else ""
        if is_send and not kind and server.send_faults:
            kind = server.send_faults.popleft()
        if is_send:
            said = msgspec.json.decode(request.content)
            now, id_ = server.clock.running(), said["submission_id"]
            server.attempts.append((now, id_, self._life, kind))
        return kind
