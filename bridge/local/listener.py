"""The daemon's door: who may come in, how many, and for how long unheard.

Owns the accept loop. Promises that another user is closed unread; that at most
64 hooks and calls and 1,024 MCP children and adapters are inside, and 64 more
that have not yet said what they are; that a refusal is a frame its client
understands; that a want of descriptors is waited out; and that a BridgeError ends
one peer while a bug ends the nursery.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, Protocol

import trio
import trio.abc
from msgspec import Struct

from bridge.core.render import Print
from bridge.errors import (
    BridgeError,
    Invalid,
    Refused,
    Unavailable,
    single_error,
)
from bridge.local.connection import FIRST_FRAME_S, Connection
from bridge.local.replies import encode_error
from bridge.local.stream import LocalStream
from bridge.local.wire import format_frame, format_print
from bridge.peer import Peer, admit, peer_of

_PAUSE_S = 0.1
_LOG_EVERY_S = 60.0
# What the system says when it is out of something that others will give back.
_CAPACITY = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}
_LONG_VERBS = {"mcp", "route"}

Serve = Callable[[Connection], Awaitable[None]]
Identify = Callable[[trio.abc.Stream], Peer]


class Log(Protocol):
    """Where the door says what the person may want to know."""

    def warning(self, event: str, **values: object) -> object:
        """One line, with values that are never a body and never a token."""
        ...


class Caps(Struct, frozen=True):
    """How many may be inside at once, by kind."""

    unheard: int = 64
    short: int = 64  # hooks and calls
    long: int = 1024  # MCP children and adapters


def peer_of_stream(stream: trio.abc.Stream) -> Peer:
    """The kernel's word on who is at the other end of an accepted stream."""
    if not isinstance(stream, LocalStream):
        raise Refused("peer_unknown", "Only a socket of this computer may connect.")
    return peer_of(stream.socket)


class Door:
    """Accepts peers, lets in whom it may, and hands each to `serve`."""

    def __init__(
        self,
        serve: Serve,
        *,
        own_uid: int,
        log: Log,
        caps: Caps | None = None,
        identify: Identify = peer_of_stream,
    ) -> None:
        self._serve = serve
        self._own_uid = own_uid
        self._log = log
        self._caps = caps or Caps()
        self._identify = identify
        self._inside: Counter[str] = Counter()
        self._log_again_at = float("-inf")

    def inside(self) -> dict[str, int]:
        """How many peers are inside now, by kind: unheard, short, long."""
        return {kind: count for kind, count in self._inside.items() if count}

    async def accept_forever(self, listener: trio.abc.Listener[Any]) -> NoReturn:
        """Accept until cancelled; what is inside then is cancelled as well."""
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    stream = await listener.accept()
                except OSError as error:
                    if error.errno not in _CAPACITY:
                        raise
                    self._log.warning("accept_paused", reason=error.strerror or "")
                    await trio.sleep(_PAUSE_S)
                    continue
                nursery.start_soon(self._serve_one, stream)

    async def _serve_one(self, stream: trio.abc.Stream) -> None:
        by = trio.current_time() + FIRST_FRAME_S
        try:
            peer = self._identify(stream)
            connection = Connection(stream, peer, by)
            await self._let_in(connection)
        except Refused as error:
            self._log_rejected(error)
        finally:
            await trio.aclose_forcefully(stream)

    async def _let_in(self, connection: Connection) -> None:
        try:
            admit(connection.peer, self._own_uid)
            await self._hear(connection)
            kind = "long" if connection.header.verb in _LONG_VERBS else "short"
            with self._place(kind), single_error():
                await self._serve(connection)
        except BridgeError as error:
            if error.code == "other_user":
                raise
            if isinstance(error, Invalid):
                self._log.warning(
                    "bad_request", code=error.code, pid=connection.peer.pid
                )
            await _refuse_politely(connection, error)

    async def _hear(self, connection: Connection) -> None:
        with self._place("unheard"):
            await connection.receive_first_header()

    @contextmanager
    def _place(self, kind: str) -> Iterator[None]:
        if self._inside[kind] >= getattr(self._caps, kind):
            raise Unavailable(
                "busy",
                "The bridge serves as many local programs as it can right now.",
                "Try again in a moment.",
            )
        self._inside[kind] += 1
        try:
            yield
        finally:
            self._inside[kind] -= 1

    def _log_rejected(self, error: Refused) -> None:
        now = trio.current_time()
        if now >= self._log_again_at:
            self._log_again_at = now + _LOG_EVERY_S
            self._log.warning("peer_rejected", code=error.code)


async def _refuse_politely(connection: Connection, error: BridgeError) -> None:
    """Say no in the words of the verb; a peer that is gone needs no answer."""
    verb = connection.header.verb
    if verb in _LONG_VERBS or error.code == "peer_gone":
        return  # their bytes belong to another protocol: closing is the answer
    frame = (
        format_print(Print())
        if verb == "hook"
        else format_frame("reply", body=encode_error(error))
    )
    with suppress(Unavailable):
        await connection.send(frame)
