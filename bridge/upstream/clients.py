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
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from bridge.errors import EXIT_CONFIG, Refused

# A connection that is not there by then is not there; the rest is trio's deadline.
CONNECT_S = 5.0
_TIMEOUT = httpx.Timeout(None, connect=CONNECT_S, pool=CONNECT_S)

# A stream is a connection of its own for hours; calls are short and few.
_STREAM_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=0)
_CALL_LIMITS = httpx.Limits(
    max_connections=16, max_keepalive_connections=4, keepalive_expiry=5.0
)

# A compressed body can unfold without end, so none is asked for or taken.
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "agentworks-bridge"}


class ServerAddress(Struct, frozen=True):
    """Where a server is: a base URL, and the socket it listens on if it is ours."""

    base_url: str
    socket_path: str = ""


class Server(Struct, frozen=True):
    """One server, open for streams and for calls."""

    address: ServerAddress
    streams: httpx.AsyncClient
    calls: httpx.AsyncClient


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

    `transport` replaces both connections (a scripted one, in tests).
    """
    # Race: at INFO these two log whole URLs; set before the first request.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    async with (
        _client(address, _STREAM_LIMITS, transport) as streams,
        _client(address, _CALL_LIMITS, transport) as calls,
    ):
        yield Server(address, streams, calls)


def _client(
    address: ServerAddress,
    limits: httpx.Limits,
    transport: httpx.AsyncBaseTransport | None,
) -> httpx.AsyncClient:
    is_tls = address.base_url.startswith("https:")
    if transport is None and not is_tls:
        transport = httpx.AsyncHTTPTransport(
            uds=address.socket_path or None,
            limits=limits,
            # No TLS here: loading certificates would cost time and memory.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )
    return httpx.AsyncClient(
        base_url=address.base_url,
        transport=transport,
        limits=limits,
        timeout=_TIMEOUT,
        headers=_HEADERS,
        follow_redirects=False,
        trust_env=is_tls,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
