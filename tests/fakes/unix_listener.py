"""A Unix socket in a short folder of its own, and who answers there.

Promises that every connection is ended with the block, and the folder gone.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

Serve = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, name: str = "s.sock") -> AsyncIterator[str]:
    """The absolute path at which `serve` takes each connection."""
    with tempfile.TemporaryDirectory(prefix="aw-") as folder:
        path = str(Path(folder) / name)
        socket = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        with socket:
            await socket.bind(path)
            socket.listen(8)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_accept, socket, serve, nursery)
                yield path
                nursery.cancel_scope.cancel()


async def _accept(
    socket: trio.socket.SocketType, serve: Serve, nursery: trio.Nursery
) -> None:
    while True:
        connected, _ = await socket.accept()
        nursery.start_soon(_serve, trio.SocketStream(connected), serve)


async def _serve(stream: trio.SocketStream, serve: Serve) -> None:
    async with stream:
        try:
            await serve(stream)
        except trio.BrokenResourceError:
            return  # the client left
