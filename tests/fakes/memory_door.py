"""In-memory peers for the daemon's door: a listener, and a log that remembers."""

from __future__ import annotations

import trio
import trio.testing
from trio.testing import MemoryReceiveStream, MemorySendStream

MemoryStream = trio.StapledStream[MemorySendStream, MemoryReceiveStream]


class MemoryListener(trio.abc.Listener[MemoryStream]):
    """Peers connect by `connect`; errors in `failures` are raised by accept first."""

    def __init__(self) -> None:
        self.failures: list[OSError] = []
        self.accepted = 0
        self._send, self._receive = trio.open_memory_channel[MemoryStream](1000)

    def connect(self) -> MemoryStream:
        """The client's end of a new connection."""
        near, far = trio.testing.memory_stream_pair()
        self.bring(far)
        return near

    def bring(self, far: MemoryStream) -> None:
        """This end of a new connection is what accept gives next."""
        self._send.send_nowait(far)

    async def accept(self) -> MemoryStream:
        """See trio.abc.Listener."""
        if self.failures:
            raise self.failures.pop(0)
        stream = await self._receive.receive()
        self.accepted += 1
        return stream

    async def aclose(self) -> None:
        """See trio.abc.AsyncResource."""
        self._send.close()
        await self._receive.aclose()


class MemoryLog:
    """Keeps what was said as (event, values)."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []

    def warning(self, event: str, **values: object) -> None:
        """See bridge.local.listener.Log."""
        self.lines.append((event, values))

    def events(self) -> list[str]:
        """The events in order."""
        return [event for event, _ in self.lines]


async def read_all(stream: MemoryStream) -> bytes:
    """Everything until the other side closes."""
    received = b""
    async for chunk in stream:
        received += bytes(chunk)
    return received
