"""HTTP on a listening socket: Hypercorn's trio connections, with our deadlines.

Owns the socket, its connections and their end. Hypercorn writes to a client
under a shield, with no deadline, so a client that stops reading could hold a
stream and the server's stop for ever. The parts of its trio worker are
therefore put together here, around a listener whose streams give up a write
after a while. Promises that a slow client loses its connection, that
connections are bounded, that one which fails takes no other with it, and that
stopping ends within the grace.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from starlette.types import ASGIApp

from bridge.log import Log
from bridge.server.faults import named
from bridge.server.limits import Settings

# Hypercorn blocks for good when a finished call leaves more unread body chunks
# than this in its queue; no client gets that many in before its connection ends.
_UNREAD_CHUNKS = 1_024


class BoundedStream(trio.abc.HalfCloseableStream):
    """One accepted connection whose writes have a deadline."""

    def __init__(
        self, stream: trio.SocketStream, send_wait_s: float, listener: BoundedListener
    ) -> None:
        self._stream = stream
        self._send_wait_s = send_wait_s
        self._listener = listener
        # Race: Hypercorn ends a broken call in one task while another ends its
        # answer (test_an_answer_and_its_end_may_meet).
        self._sending = trio.Lock()
        # Hypercorn asks the socket for its addresses.
        self.socket = stream.socket

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Raises BrokenResourceError, with the socket closed, when it takes too
        long.
        """
        with trio.move_on_after(self._send_wait_s) as waiting:
            async with self._sending:
                await self._stream.send_all(data)
        if waiting.cancelled_caught:
            self._listener.log.warning("slow_client_closed")
            await trio.aclose_forcefully(self)
            raise trio.BrokenResourceError("the client takes nothing")

    async def wait_send_all_might_not_block(self) -> None:
        """See trio."""
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See trio."""
        return bytes(await self._stream.receive_some(max_bytes))

    async def send_eof(self) -> None:
        """See trio."""
        async with self._sending:
            await self._stream.send_eof()

    async def aclose(self) -> None:
        """See trio."""
        self._listener.forget(self)
        await self._stream.aclose()


class BoundedListener(trio.abc.Listener[BoundedStream]):
    """Accepts at most `connections` at a time; further ones are closed at once."""

    def __init__(
        self, listener: trio.SocketListener, settings: Settings, log: Log
    ) -> None:
        self.log = log
        self._listener = listener
        self._settings = settings
        self._open: set[BoundedStream] = set()
        self._closed = trio.Event()

    async def accept(self) -> BoundedStream:
        """The next connection there is room for."""
        while True:
            accepted = await self._listener.accept()
            if len(self._open) < self._settings.connections:
                stream = BoundedStream(accepted, self._settings.send_wait_s, self)
                self._open.add(stream)
                return stream
            await trio.aclose_forcefully(accepted)

    async def aclose(self) -> None:
        """Take no more connections; the open ones stay."""
        await self._listener.aclose()

    def forget(self, stream: BoundedStream) -> None:
        """Called by a connection that closes."""
        self._open.discard(stream)
        self._closed.set()

    async def wait_until_none(self) -> None:
        """Until no connection is open."""
        while self._open:
            self._closed = trio.Event()
            await self._closed.wait()

    async def abort(self) -> None:
        """Close every connection now, in the middle of whatever it does."""
        for stream in list(self._open):
            await trio.aclose_forcefully(stream)


class Connection(TCPServer):
    """Hypercorn's connection, but one that its client closed ends there and then.

    Hypercorn alone lets it wait out the keep-alive, so that clients which come and
    go would use up the connections in a minute
    (test_a_client_that_goes_leaves_its_place_at_once).
    """

    _is_read = False

    async def _read_data(self) -> None:
        await super()._read_data()
        self._is_read = True
        await self.idle_task.stop()

    async def _idle_timeout(self) -> None:
        # Race: an answer may end, and begin to wait for the next call, after its
        # client has gone (the same test, cut in the middle of a call).
        if not self._is_read:
            await super()._idle_timeout()


def _config(settings: Settings) -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.keep_alive_timeout = settings.keep_alive_s
    config.max_app_queue_size = _UNREAD_CHUNKS
    return config


async def serve_http(
    app: ASGIApp,
    listener: trio.SocketListener,
    settings: Settings,
    stopping: trio.Event,
    log: Log,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `stopping`; then calls have the grace to end.

    Closes the listener. Cancelling it from outside ends it the hard way.
    """
    bounded = BoundedListener(listener, settings, log)
    context = WorkerContext(None)
    speak = partial(
        Connection,
        ASGIWrapper(cast("Any", app)),
        _config(settings),
        context,
        ConnectionState({}),
    )

    async def connection(stream: BoundedStream) -> None:
        try:
            await speak(cast("Any", stream))
        except Exception as error:  # not ours, and not a reason to leave the others
            log.error("connection_failed", error=named(error))
            await trio.aclose_forcefully(stream)

    async with trio.open_nursery() as connections:
        async with trio.open_nursery() as accepting:
            accepting.start_soon(
                partial(
                    trio.serve_listeners,
                    connection,
                    [bounded],
                    handler_nursery=connections,
                )
            )
            task_status.started()
            await stopping.wait()
            accepting.cancel_scope.cancel()
        await context.terminated.set()
        with trio.move_on_after(settings.stop_grace_s):
            await bounded.wait_until_none()
        await bounded.abort()
        connections.cancel_scope.cancel()
