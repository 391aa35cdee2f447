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
from collections import deque
from contextlib import suppress
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
        self._knocked: deque[socket.socket] = deque()

    async def accept(self) -> LocalStream:
        """See trio.abc.Listener; OSError when the system is out of something."""
        while True:
            if self._knocked:
                await trio.lowlevel.checkpoint()
                return _stream(self._knocked.popleft())
            listening = self._listening
            try:
                await trio.lowlevel.wait_readable(listening)
            except trio.ClosedResourceError:
                if listening is self._listening:
                    raise
            if listening is not self._listening:
                continue  # another one was put in its place
            try:
                return _stream(listening.accept()[0])
            except (BlockingIOError, ConnectionAbortedError):
                continue  # it went away again before we came

    def replace(self, listening: socket.socket) -> None:
        """Accept from this one from now on; the one before is closed.

        Who had knocked at that one already is accepted first.
        """
        listening.setblocking(False)
        before, self._listening = self._listening, listening
        with suppress(OSError):  # nobody is left there, or descriptors are short
            while True:
                self._knocked.append(before.accept()[0])
        trio.lowlevel.notify_closing(before)
        before.close()

    async def aclose(self) -> None:
        """Close now; a waiting accept gets ClosedResourceError."""
        while self._knocked:
            self._knocked.popleft().close()
        if self._listening.fileno() >= 0:
            trio.lowlevel.notify_closing(self._listening)
            self._listening.close()


def _stream(connected: socket.socket) -> LocalStream:
    connected.setblocking(False)
    return LocalStream(connected)
