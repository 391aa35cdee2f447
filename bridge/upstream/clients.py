"""The two HTTP clients of one server, and which servers may be spoken to.

Owns the transports. Promises that a token travels only over TLS, loopback or a
private Unix socket, that no redirect is followed, and that streams never use up
the connections that calls need.

The environment's proxy and certificate variables are honoured for https alone,
where a proxy carries a tunnel and sees no token; plain http to this computer
and the socket never use a proxy. A `.netrc` is never read.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import trio
from msgspec import Struct

from bridge.errors import EXIT_CONFIG, Refused

# A connection that is not there by then is not there; the rest is trio's deadline.
CONNECT_S = 5.0
_CLOSE_S = 1.0
_TIMEOUT = httpx.Timeout(None, connect=CONNECT_S, pool=CONNECT_S)

# A stream is a connection of its own for hours; calls are short and few.
_STREAM_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=0)
CALLS_AT_ONCE = 16
_CALL_LIMITS = httpx.Limits(
    max_connections=CALLS_AT_ONCE, max_keepalive_connections=4, keepalive_expiry=5.0
)

# A compressed body can unfold without end, so none is asked for or taken.
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "agentworks-bridge"}


class _PatientClient(httpx.AsyncClient):
    """A client whose pool never loses a place to a request that was cancelled.

    The pool of httpx forgets a connection that was just given to a request, or just
    made for it, when the request is cancelled before its first byte: the connection
    stays in the pool, and no request is ever given it again. So a cancellation waits
    for the next moment at which the connection knows how to close itself: while it
    connects, and from the first byte on.
    (test_a_call_that_is_cancelled_at_any_moment_leaves_its_place_to_others)

    It forgets a proxy's tunnel in the same way when TLS inside it fails or is
    cancelled, so after a failure what belongs to no request is closed here.
    (test_a_tunnel_that_fails_leaves_its_place_to_others)
    """

    async def send(
        self,
        request: httpx.Request,
        **options: Any,  # noqa: ANN401 - whatever its parent takes
    ) -> httpx.Response:
        """As its parent does."""
        with trio.CancelScope(shield=True) as begun:

            async def note(event: str, _: object) -> None:
                is_made = event.startswith("connection.") and event.endswith("complete")
                if is_made or event.endswith(".started"):
                    begun.shield = is_made

            request.extensions["trace"] = note
            try:
                return await super().send(request, **options)
            except BaseException:
                await self._close_lost()
                raise
        raise AssertionError("nobody cancels this scope itself")

    async def _close_lost(self) -> None:
        """Close what the pools hold for no request; they then let go of it."""
        with trio.move_on_after(_CLOSE_S, shield=True):
            for transport in (self._transport, *self._mounts.values()):
                if not isinstance(transport, httpx.AsyncHTTPTransport):
                    continue
                pool = transport._pool
                used = [each.connection for each in pool._requests]
                for each in pool.connections:
                    if each not in used and not each.is_idle():
                        await each.aclose()


class ServerAddress(Struct, frozen=True):
    """Where a server is: a base URL, and the socket it listens on if it is ours."""

    base_url: str
    socket_path: str = ""


class Server(Struct, frozen=True):
    """One server, open for streams and for calls; a call takes one of the places."""

    address: ServerAddress
    streams: httpx.AsyncClient
    calls: httpx.AsyncClient
    places: trio.Semaphore


def embedded(socket_path: Path) -> ServerAddress:
    """The server that listens on a private Unix socket of this computer."""
    return ServerAddress("http://bridge", str(socket_path))


def remote(url: str) -> ServerAddress:
    """A server by its URL; raises Refused for one that would see tokens in clear."""
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (
        parts.scheme == "http" and _is_loopback(parts.hostname or "")
    )
    if not parts.hostname or not is_safe or parts.username or parts.query:
        raise Refused(
            "bad_server_address",
            "A server address must be https://HOST, or http:// on this computer;"
            " nothing was sent.",
            "Give such an address with --server.",
            exit_code=EXIT_CONFIG,
        )
    return ServerAddress(url.rstrip("/"))


@asynccontextmanager
async def open_server(
    address: ServerAddress, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[Server]:
    """The server's two clients, closed at the end.

    Raises Refused (exit 78) for variables of the environment that cannot be used.
    `transport` replaces both connections (a scripted one, in tests).
    """
    # Race: at INFO these two log whole URLs; set before the first request.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    async with (
        _client(address, _STREAM_LIMITS, transport) as streams,
        _client(address, _CALL_LIMITS, transport) as calls,
    ):
        yield Server(address, streams, calls, trio.Semaphore(CALLS_AT_ONCE))


def _client(
    address: ServerAddress,
    limits: httpx.Limits,
    transport: httpx.AsyncBaseTransport | None,
) -> httpx.AsyncClient:
    is_tls = address.base_url.startswith("https:")
    is_scripted = transport is not None
    if transport is None and not is_tls:
        transport = httpx.AsyncHTTPTransport(
            uds=address.socket_path or None,
            limits=limits,
            # No TLS here: loading certificates would cost time and memory.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )
    # A scripted transport has no connections, and says nothing of them.
    kind = httpx.AsyncClient if is_scripted else _PatientClient
    try:
        return kind(
            base_url=address.base_url,
            transport=transport,
            limits=limits,
            timeout=_TIMEOUT,
            headers=_HEADERS,
            follow_redirects=False,
            trust_env=is_tls,
        )
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
        raise _unusable_variables(error) from None  # it may quote a password


def _unusable_variables(error: Exception) -> Refused:
    return Refused(
        "bad_network_variables",
        "The proxy or certificate variables of this environment cannot be used"
        f" ({type(error).__name__}), so no server is asked.",
        "Look at HTTPS_PROXY, ALL_PROXY (no SOCKS), SSL_CERT_FILE and SSL_CERT_DIR.",
        exit_code=EXIT_CONFIG,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
