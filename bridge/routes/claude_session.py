"""Claude Code's own inbox for a session: a private Unix socket that takes text.

Owns the two lines that are written there. Promises one attempt for each offer, to
the socket of the very process whose registration names this session, and that a
write counts as an offer and nothing more. Observed with 2.1.332 (peerProtocol 1): a
message for another session is dropped without a word, so its id goes with each one;
an idle chat starts a turn at once, a busy one takes it after its next tool call,
and a half-typed draft stays as it is. Whether a text was held or turned away is
told to a reply address (claude_notices).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
import trio

from bridge.core.ids import OfferId, SessionId
from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached
from bridge.errors import BridgeError
from bridge.peer import Peer
from bridge.routes.claude_notices import ReplyPlace, Word, mark_of, reply_place
from bridge.routes.unix_socket import connect, vetted

WRITE_S = 2.0
# Within milliseconds an idle chat shows the text to its hooks or says that it did
# not let it in; a loaded computer took 1.3 s. A chat in a tool call says neither.
WORD_S = 1.8
# One line of the host holds 1,048,576 characters, far more than ours.
BUDGET = Budget("bytes", 96 * 1024)

_HELD = (
    "Claude Code holds messages of other programs until they are approved in the "
    "chat, so they come by its hooks."
)
_NOT_LET_IN = (
    "Claude Code turns messages of other programs away in this chat (its setting "
    "crossSessionInbound), so they come by its hooks."
)


class Inbox(Protocol):
    """Where the session's registration says that its text goes."""

    @property
    def file(self) -> str: ...
    @property
    def socket_path(self) -> str: ...
    @property
    def token(self) -> str: ...


class ClaudeSession:
    """A Way to one session.

    `inbox` reads the registration anew each time, and raises Refused where it leads
    to this session no more; `seen` returns once the host has shown an offer's text
    to its hooks.
    """

    route = "claude_session"
    budget = BUDGET
    limit = 20

    def __init__(
        self,
        session_id: SessionId,
        pid: int,
        inbox: Callable[[], Inbox],
        seen: Callable[[OfferId], Awaitable[None]],
    ) -> None:
        self._session_id = session_id
        self._pid = pid
        self._inbox = inbox
        self._seen = seen
        self.address = ""

    async def check(self) -> None:
        """Raises Refused or Unavailable, with the reason, where it is not open."""
        inbox = self._inbox()
        vetted(inbox.socket_path)
        self.address = f"claude+session://{inbox.file}"

    async def is_open(self) -> bool:
        """The registration still names this session, and its socket is safe."""
        try:
            await self.check()
        except BridgeError:
            return False
        return True

    async def offer(self, parcel: Parcel) -> Reached:
        """Write it as one line; not one byte is written where that is refused."""
        try:
            inbox = self._inbox()
            stream = await connect(inbox.socket_path, self._is_host)
        except BridgeError as error:
            return Reached(OfferOutcome.NOT_EMITTED, error.message, is_over=True)
        place = reply_place(inbox.socket_path, self._session_id, self._pid)
        async with stream, place as replies:
            said = lines(self._session_id, inbox.token, parcel, replies)
            reached = await _write(stream, said)
            if replies is None or reached.outcome is not OfferOutcome.EMITTED:
                return reached
            return await self._word(replies, parcel)

    def _is_host(self, peer: Peer) -> bool:
        return peer.pid == self._pid

    async def _word(self, replies: ReplyPlace, parcel: Parcel) -> Reached:
        """Shown to its hooks, held, turned away, or neither within WORD_S."""
        reached = Reached(OfferOutcome.EMITTED)

        async def take_word() -> None:
            nonlocal reached
            word = await replies.word(mark_of(parcel.offer_id))
            reached = _HEARD[word]
            nursery.cancel_scope.cancel()

        async def take_sign() -> None:
            nonlocal reached
            await self._seen(parcel.offer_id)
            reached = Reached(OfferOutcome.EMITTED, evidence="seen")
            nursery.cancel_scope.cancel()

        with trio.move_on_after(WORD_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take_word)
                nursery.start_soon(take_sign)
        return reached


_HEARD = {
    # It may still be let in, so it is not offered a second time.
    Word.HELD: Reached(OfferOutcome.UNKNOWN, _HELD, is_over=True, told="native_held"),
    Word.NOT_LET_IN: Reached(
        OfferOutcome.NOT_EMITTED, _NOT_LET_IN, is_over=True, told="native_not_let_in"
    ),
}


async def _write(stream: trio.SocketStream, lines: bytes) -> Reached:
    with trio.move_on_after(WRITE_S):
        try:
            await stream.send_all(lines)
        except (trio.BrokenResourceError, OSError):
            why = "The chat closed its inbox."
            return Reached(OfferOutcome.UNKNOWN, why, is_over=True)
        return Reached(OfferOutcome.EMITTED)
    why = "The chat did not read its inbox."
    return Reached(OfferOutcome.UNKNOWN, why, is_over=True)


def lines(
    session_id: SessionId, token: str, parcel: Parcel, replies: ReplyPlace | None
) -> bytes:
    """What is written for one offer: the key, if there is one, and the text."""
    said: list[object] = [{"type": "auth", "token": token}] if token else []
    message: dict[str, object] = {
        "type": "user",
        "session_id": session_id,
        "message": {"role": "user", "content": parcel.text},
    }
    if replies is not None:
        message |= {"from": replies.address, "msg_id": mark_of(parcel.offer_id)}
    said.append(message)
    return b"".join(msgspec.json.encode(each) + b"\n" for each in said)
