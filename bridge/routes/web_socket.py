"""WebSocket messages over a connection that is already there.

Owns the upgrade and the frames, with wsproto. Promises that a message is whole
text of at most MESSAGE_LIMIT bytes, that pings are answered, and that every way
in which the other end stops or says something else is one error, Unavailable.
"""

from __future__ import annotations

from collections import deque
from typing import Self

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from bridge.errors import Unavailable

MESSAGE_LIMIT = 4 * 1024 * 1024
_READ_BYTES = 64 * 1024


class WebSocket:
    """The client's end of one WebSocket; for one task at a time."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._frames = WSConnection(ConnectionType.CLIENT)
        self._events: deque[Event] = deque()

    @classmethod
    async def over(cls, stream: trio.SocketStream) -> Self:
        """Upgrade the connection; the caller closes it. Raises Unavailable."""
        self = cls(stream)
        await self._write(Request(host="localhost", target="/"))
        event = await self._next()
        if not isinstance(event, AcceptConnection):
            raise gone("it speaks no WebSocket")
        return self

    async def send(self, text: str) -> None:
        """Write one message; raises Unavailable when it may not have gone whole."""
        await self._write(TextMessage(data=text))

    async def receive(self) -> str:
        """The next whole message; raises Unavailable at the end of the connection."""
        parts: list[str] = []
        size = 0
        while True:
            event = await self._next()
            if isinstance(event, Ping):
                await self._write(event.response())
            if not isinstance(event, TextMessage):
                continue
            parts.append(event.data)
            size += len(event.data.encode())
            if size > MESSAGE_LIMIT:
                raise gone("it said more than is taken in at once")
            if event.message_finished:
                return "".join(parts)

    async def _next(self) -> Event:
        while not self._events:
            await self._read()
        event = self._events.popleft()
        if isinstance(event, (CloseConnection, RejectConnection)):
            raise gone("it closed the connection")
        return event

    async def _read(self) -> None:
        try:
            received = await self._stream.receive_some(_READ_BYTES)
            if not received:
                raise gone("it closed the connection")
            self._frames.receive_data(received)
            self._events.extend(self._frames.events())
        except (trio.BrokenResourceError, OSError) as error:
            raise gone("the connection broke") from error
        except ProtocolError as error:
            raise gone("it speaks no WebSocket") from error

    async def _write(self, event: Event) -> None:
        try:
            await self._stream.send_all(self._frames.send(event))
        except (trio.BrokenResourceError, OSError) as error:
            raise gone("the connection broke") from error
        except ProtocolError as error:
            raise gone("it closed the connection") from error


def gone(why: str) -> Unavailable:
    """The one error: the other end is of no use any more."""
    return Unavailable(
        "native_gone",
        f"The program's own socket is of no use, since {why}.",
        "Messages still come by its hooks.",
    )
