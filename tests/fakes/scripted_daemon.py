"""A stand-in for the daemon: each connection of its socket runs one script.

A script gets the connection and returns what it wants the test to see. The fake
owns `<state>/run/bridge.sock` and knows nothing of what goes over it but lines.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCOUTQ

import trio


class Connection:
    """One client, as a script sees it."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.buffer = b""

    async def line(self) -> bytes:
        """The next line without its newline; what came before an end of file."""
        while b"\n" not in self.buffer:
            chunk = await self.stream.receive_some(65536)
            if not chunk:
                break
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    async def exactly(self, count: int) -> bytes:
        """That many bytes, fewer at an end of file."""
        while len(self.buffer) < count:
            chunk = await self.stream.receive_some(1 << 20)
            if not chunk:
                break
            self.buffer += chunk
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    async def request(self) -> tuple[bytes, bytes]:
        """Header and body of one `AW1` frame."""
        header = await self.line()
        return header, await self.exactly(int(header.split()[-1]))

    async def send(self, *chunks: bytes) -> None:
        """Send chunks one by one, each only when the one before was read."""
        for chunk in chunks:
            await self.stream.send_all(chunk)
            await self.wait_taken()

    async def wait_taken(self) -> None:
        """Until the client has read everything, or is gone."""
        unread = bytearray(4)
        while ioctl(self.stream.socket.fileno(), TIOCOUTQ, unread) == 0:
            if not any(unread):
                return
            await trio.sleep(0.0005)

    async def rest(self) -> bytes:
        """Everything up to the end of file; a reset ends it too."""
        try:
            while chunk := await self.stream.receive_some(1 << 20):
                self.buffer += chunk
        except trio.BrokenResourceError:
            pass
        rest, self.buffer = self.buffer, b""
        return rest


Script = Callable[[Connection], Awaitable[object]]


class ScriptedDaemon:
    """What the scripts returned, in the order in which they ended."""

    def __init__(self) -> None:
        self.seen: list[object] = []


def listen(state: Path, backlog: int = 64) -> socket.socket:
    """A bound, listening socket at the place where clients look for it."""
    run = state / "run"
    run.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = Path.cwd()
    listener = socket.socket(socket.AF_UNIX)
    os.chdir(run)  # so that the path may be of any length
    try:
        listener.bind("bridge.sock")
    finally:
        os.chdir(before)
    listener.listen(backlog)
    return listener


@asynccontextmanager
async def scripted_daemon(
    state: Path, *scripts: Script
) -> AsyncIterator[ScriptedDaemon]:
    """Serve connections in turn, the last script for all that follow.

    Leaving waits for the scripts that are running.
    """
    daemon = ScriptedDaemon()
    waiting = list(scripts)

    async def serve(stream: trio.SocketStream) -> None:
        script = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        async with stream:
            daemon.seen.append(await script(Connection(stream)))

    with trio.socket.from_stdlib_socket(listen(state)) as bound:
        async with trio.open_nursery() as running, trio.open_nursery() as accepting:
            listener = trio.SocketListener(bound)

            async def accept() -> None:
                while True:
                    running.start_soon(serve, await listener.accept())

            accepting.start_soon(accept)
            yield daemon
            accepting.cancel_scope.cancel()
