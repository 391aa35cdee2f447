"""A TCP server that breaks connections in the ways that networks do.

It listens on 127.0.0.1 at a port of the system's choice, reads one whole request
of each connection, and does what the script for it says.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from enum import Enum

import trio


class End(Enum):
    """How a connection ends, apart from its script's running out (an orderly end)."""

    RESET = "reset"
    """RST: the peer's process died, or a firewall forgot the connection."""
    CUT = "cut"
    """FIN below TLS, without its own goodbye."""


Script = Sequence["bytes | End"]
_NET_S = 10.0


class TcpServer:
    """See the module; `requests` is what each connection said, head and body."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[bytes] = []
        self.connections = 0


@asynccontextmanager
async def tcp_server(
    script: Callable[[bytes], Script], tls: ssl.SSLContext | None = None
) -> AsyncIterator[TcpServer]:
    """A listening server; `script` maps a request to what is said and how it ends."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = TcpServer(listener.socket.getsockname()[1])

    async def serve(stream: trio.SocketStream) -> None:
        server.connections += 1
        with trio.move_on_after(_NET_S):
            await _serve(server, stream, script, tls)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield server
        nursery.cancel_scope.cancel()


async def _serve(
    server: TcpServer,
    raw: trio.SocketStream,
    script: Callable[[bytes], Script],
    tls: ssl.SSLContext | None,
) -> None:
    stream: trio.abc.Stream = raw
    try:
        if tls is not None:
            stream = trio.SSLStream(raw, tls, server_side=True, https_compatible=True)
        request = await _request(stream)
        server.requests.append(request)
        for said in script(request):
            if isinstance(said, bytes):
                await stream.send_all(said)
            elif said is End.RESET:
                # Lingering for no time makes the close a reset.
                raw.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                await trio.aclose_forcefully(raw)
                return
            else:
                await trio.aclose_forcefully(raw)
                return
        await stream.aclose()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        await trio.aclose_forcefully(raw)


async def _request(stream: trio.abc.Stream) -> bytes:
    """The head and as much body as it says; less when the peer stops speaking."""
    said = b""
    while b"\r\n\r\n" not in said:
        some = await stream.receive_some(65536)
        if not some:
            return said
        said += some
    head, _, body = said.partition(b"\r\n\r\n")
    wanted = _length(head)
    while len(body) < wanted:
        body += await stream.receive_some(65536)
    return head + b"\r\n\r\n" + body


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value)
    return 0


def chunk(content: bytes) -> bytes:
    """One whole chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(content), content)


def document(content: bytes) -> bytes:
    """A whole JSON answer, after which the connection is closed."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return head + b"content-length: %d\r\n\r\n%b" % (len(content), content)


EVENTS = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
"""The head of a stream; chunks follow."""
