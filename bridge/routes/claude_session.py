"""Claude Code's own inbox for a session: a private Unix socket that takes text.

Owns the two lines that are written there. Promises one attempt for each offer, to
the socket of the very process whose registration names this session, and that a
write counts as an offer and nothing more: the socket never answers. Observed with
2.1.332 (peerProtocol 1): a message for another session is dropped without a word,
so its id goes with each one; an idle chat starts a turn at once, a busy one takes
it after its next tool call, and a half-typed draft stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec
import trio

from bridge.core.ids import SessionId
from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached
from bridge.errors import BridgeError
from bridge.peer import Peer
from bridge.routes.unix_socket import connect, vetted

WRITE_S = 2.0
# One line of the host holds 1,048,576 characters, far more than ours.
BUDGET = Budget("bytes", 96 * 1024)


class Inbox(Protocol):
    """Where the session's registration says that its text goes."""

    @property
    def file(self) -> str: ...
    @property
    def socket_path(self) -> str: ...
    @property
    def token(self) -> str: ...


class ClaudeSession:
    """A Way to one session; `inbox` reads the registration anew each time."""

    route = "claude_session"
    budget = BUDGET
    limit = 20

    def __init__(
        self, session_id: SessionId, pid: int, inbox: Callable[[], Inbox | None]
    ) -> None:
        self._session_id = session_id
        self._pid = pid
        self._inbox = inbox
        self.address = ""

    async def is_open(self) -> bool:
        """The registration still names this session, and its socket is safe."""
        inbox = self._inbox()
        if inbox is None:
            return False
        self.address = f"claude+session://{inbox.file}"
        try:
            vetted(inbox.socket_path)
        except BridgeError:
            return False
        return True

    async def offer(self, parcel: Parcel) -> Reached:
        """Write it as one line; not one byte is written where that is refused."""
        inbox = self._inbox()
        if inbox is None:
            return Reached(
                OfferOutcome.NOT_EMITTED, "the chat is no longer open there", "", True
            )
        try:
            stream = await connect(inbox.socket_path, self._is_host)
        except BridgeError as error:
            return Reached(OfferOutcome.NOT_EMITTED, error.message, "", True)
        async with stream:
            return await _write(stream, _lines(self._session_id, inbox.token, parcel))

    def _is_host(self, peer: Peer) -> bool:
        return peer.pid == self._pid


async def _write(stream: trio.SocketStream, lines: bytes) -> Reached:
    with trio.move_on_after(WRITE_S):
        try:
            await stream.send_all(lines)
        except (trio.BrokenResourceError, OSError):
            return Reached(OfferOutcome.UNKNOWN, "the chat closed its inbox", "", True)
        return Reached(OfferOutcome.EMITTED)
    return Reached(OfferOutcome.UNKNOWN, "the chat did not read its inbox", "", True)


def _lines(session_id: SessionId, token: str, parcel: Parcel) -> bytes:
    said: list[object] = [{"type": "auth", "token": token}] if token else []
    said.append(
        {
            "type": "user",
            "session_id": session_id,
            "message": {"role": "user", "content": parcel.text},
        }
    )
    return b"".join(msgspec.json.encode(each) + b"\n" for each in said)
