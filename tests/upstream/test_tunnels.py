"""A server behind a proxy: what goes wrong in a tunnel uses nothing up."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trustme

from bridge.errors import BridgeError
from bridge.upstream import api
from bridge.upstream.api import Caller
from bridge.upstream.clients import CALLS_AT_ONCE, Server, open_server, remote
from bridge.upstream.credentials import FixedToken
from tests.fakes.clock import FakeClock
from tests.fakes.tcp_server import document, tcp_server
from tests.upstream.following import follow

HELLO = document(b'{"version":"1"}')
DEADLINE_S = 20.0
A_MOMENT_S = 0.02


class Proxy:
    """Opens each tunnel that it is asked for; `way` is what comes of it."""

    def __init__(self, target_port: int) -> None:
        self.way = "through"
        self._target_port = target_port

    async def serve(self, near: trio.SocketStream) -> None:
        """One connection."""
        await near.receive_some(4096)
        await near.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
        if self.way == "nonsense":
            await near.receive_some(4096)
            await near.send_all(b"this is no TLS at all\r\n")
        elif self.way == "silence":
            await trio.sleep_forever()
        elif self.way == "through":
            far = await trio.open_tcp_stream("127.0.0.1", self._target_port)
            async with far, trio.open_nursery() as nursery:
                nursery.start_soon(_carry, far, near)
                await _carry(near, far)
                nursery.cancel_scope.cancel()


async def _carry(source: trio.SocketStream, sink: trio.SocketStream) -> None:
    async for data in source:
        await sink.send_all(data)


@asynccontextmanager
async def behind_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Proxy, Server]]:
    """A server with TLS, which is reached through the proxy alone."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("agentworks.invalid").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "own.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
    with trio.fail_after(DEADLINE_S):
        async with (
            tcp_server(lambda _: [HELLO], tls) as far,
            trio.open_nursery() as running,
        ):
            proxy = Proxy(far.port)
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            running.start_soon(trio.serve_listeners, proxy.serve, [listener])
            port = listener.socket.getsockname()[1]
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
            async with open_server(remote("https://agentworks.invalid")) as server:
                yield proxy, server
            running.cancel_scope.cancel()


def caller(server: Server) -> Caller:
    return Caller(server, FixedToken("cnry-token"), FakeClock())


async def hear(caller: Caller) -> None:
    with pytest.raises(BridgeError):
        await api.hello(caller)


async def give_up(caller: Caller) -> None:
    with trio.move_on_after(A_MOMENT_S):
        await api.hello(caller)


@pytest.mark.parametrize(
    ("way", "ask"), [("nonsense", hear), ("cut", hear), ("silence", give_up)]
)
async def test_a_tunnel_that_fails_leaves_its_place_to_others(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    ask: Callable[[Caller], Awaitable[None]],
) -> None:
    async with behind_a_proxy(tmp_path, monkeypatch) as (proxy, server):
        proxy.way = way
        for _ in range(CALLS_AT_ONCE):
            await ask(caller(server))
        proxy.way = "through"

        assert (await api.hello(caller(server))).version == "1"


async def test_streams_whose_tunnels_fail_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with behind_a_proxy(tmp_path, monkeypatch) as (proxy, server):
        proxy.way = "nonsense"
        for _ in range(3):
            await follow(caller(server))

        (tunnels,) = [each for each in server.streams._mounts.values() if each]
        kept = tunnels._pool.connections  # type: ignore[attr-defined]
        assert [each for each in kept if not each.is_closed()] == []
