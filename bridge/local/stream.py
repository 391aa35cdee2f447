"""One accepted Unix socket as a stream, and the listener that accepts them.

A hook's whole answer is one short read and one short write, so what a general
stream adds to each of them would be most of the daemon's time. Promises what
trio.abc.Stream promises, but for one thing: what can be done at once is done at
once, without letting other tasks run first (a cancellation is noticed all the
same). Accepting lets them run each time, so that nobody is kept waiting by a
crowd at the door.
"""

from __future__ import annotations

import socket
from typing import NoReturn

import trio

_CHUNK = 64 * 1024


class LocalStream(trio.abc.Stream):
    """A connected, non-blocking Unix socket; `socket` is for its options."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See trio.abc.ReceiveStream."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            try:
                return self.socket.recv(max_bytes or _CHUNK)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self.socket)
            except OSError as error:
                self._raise_ended(error)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """See trio.abc.SendStream."""
        await trio.lowlevel.checkpoint_if_cancelled()
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.socket.send(rest) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self.socket)
            except OSError as error:
                self._raise_ended(error)

    async def wait_send_all_might_not_block(self) -> None:
        """See trio.abc.SendStream."""
        if self.socket.fileno() < 0:
            raise trio.ClosedResourceError("this side has closed the stream")
        await trio.lowlevel.wait_writable(self.socket)

    async def aclose(self) -> None:
        """Close now; whoever waits in another task gets ClosedResourceError."""
        if self.socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self.socket)
            self.socket.close()

    def _raise_ended(self, error: OSError) -> NoReturn:
        if self.socket.fileno() < 0:
            raise trio.ClosedResourceError("this side has closed the stream") from error
        raise trio.BrokenResourceError("the other side is gone") from error


class LocalListener(trio.abc.Listener[LocalStream]):
    """Accepts from a bound, listening Unix socket, which it closes."""

    def __init__(self, listening: socket.socket) -> None:
        listening.setblocking(False)
        self._listening = listening

    async def accept(self) -> LocalStream:
        """See trio.abc.Listener; OSError when the system is out of something."""
        while True:
            await trio.lowlevel.wait_readable(self._listening)
            try:
                connected, _ = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                continue  # it went away again before we came
            connected.setblocking(False)
            return LocalStream(connected)

    async def aclose(self) -> None:
        """Close now; a waiting accept gets ClosedResourceError."""
        if self._listening.fileno() >= 0:
            trio.lowlevel.notify_closing(self._listening)
            self._listening.close()
