"""One accepted peer: its bytes in, frames out, and deadlines on both.

Owns the limits of one connection. Promises that what a peer sends is bounded in
size and, for its first frame, in time; that a peer which does not read its reply
is given up; and that a peer which goes away is Unavailable, never a crash.
"""

from __future__ import annotations

import trio
import trio.abc

from bridge.errors import Invalid, Unavailable
from bridge.local.wire import Header, Incoming
from bridge.peer import Peer

FIRST_FRAME_S = 5.0
SEND_S = 5.0
REQUEST_LIMIT = 1024 * 1024  # bytes of one request
HOOK_LIMIT = 8 * 1024 * 1024  # bytes of one hook's stdin
_CHUNK = 64 * 1024


class Connection:
    """A peer and what it asked; `header` is set before a caller sees it."""

    def __init__(
        self, stream: trio.abc.Stream, peer: Peer, first_frame_by: float
    ) -> None:
        self.stream = stream
        self.peer = peer
        self.header = Header("")
        self._incoming = Incoming()
        self._first_frame_by = first_frame_by

    async def receive_first_header(self) -> Header:
        """Read the header that says what this peer wants, and keep it.

        Raises Invalid for anything else, Unavailable when nothing complete came
        within FIRST_FRAME_S of the accept.
        """
        with trio.CancelScope(deadline=self._first_frame_by) as scope:
            header = await self._receive_header()
        _check_in_time(scope)
        if header is None:
            raise _peer_gone()
        self.header = header
        return header

    async def receive_body(self, limit_bytes: int) -> bytes:
        """The body of the first header; the same absolute deadline holds."""
        body = self._take_body(self.header, limit_bytes)
        if body is not None:  # it came with its header, as most do
            return body
        with trio.CancelScope(deadline=self._first_frame_by) as scope:
            body = await self._receive_body(self.header, limit_bytes)
        _check_in_time(scope)
        assert body is not None  # noqa: S101 - the scope was not cancelled
        return body

    async def receive_frame(self, limit_bytes: int) -> tuple[Header, bytes] | None:
        """The next whole frame, or None when the peer has ended cleanly.

        Waits without a limit of its own: the caller sets one.
        """
        header = await self._receive_header()
        if header is None:
            return None
        return header, await self._receive_body(header, limit_bytes)

    def take_received(self) -> bytes:
        """What came after the header, for a reader of another protocol."""
        return self._incoming.take_rest()

    async def send(self, frame: bytes) -> None:
        """Write one frame within SEND_S; raises Unavailable."""
        with trio.CancelScope(deadline=trio.current_time() + SEND_S) as scope:
            try:
                await self.stream.send_all(frame)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise _peer_gone() from error
        _check_in_time(scope)

    async def close(self) -> None:
        """Close the stream now."""
        await trio.aclose_forcefully(self.stream)

    async def _receive_header(self) -> Header | None:
        while True:
            header = self._incoming.take_header()
            if header is not None:
                return header
            if not await self._receive_more():
                if len(self._incoming):
                    raise _truncated()
                return None

    async def _receive_body(self, header: Header, limit_bytes: int) -> bytes:
        while True:
            body = self._take_body(header, limit_bytes)
            if body is not None:
                return body
            if not await self._receive_more():
                raise _truncated()

    def _take_body(self, header: Header, limit_bytes: int) -> bytes | None:
        if header.length > limit_bytes:
            raise Invalid(
                "too_big",
                f"A request of {header.length} bytes is over the limit of"
                f" {limit_bytes} bytes.",
                "Send less at once.",
            )
        return self._incoming.take_body(header.length)

    async def _receive_more(self) -> bool:
        try:
            chunk = await self.stream.receive_some(_CHUNK)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise _peer_gone() from error
        self._incoming.feed(bytes(chunk))
        return bool(chunk)


def _check_in_time(scope: trio.CancelScope) -> None:
    if scope.cancelled_caught:
        raise Unavailable(
            "peer_slow",
            "A local program took too long, so its connection was closed.",
            "Try again.",
        )


def _peer_gone() -> Unavailable:
    return Unavailable("peer_gone", "The local program that asked has gone away.")


def _truncated() -> Invalid:
    return Invalid(
        "truncated",
        "A local program ended in the middle of its request, so nothing was done.",
        "Try again.",
    )
