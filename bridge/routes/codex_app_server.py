"""Codex's app-server: a thread that it has loaded is woken, or joined in its turn.

Owns what is handed to the server and what its answers mean. Promises one attempt
for each offer, to exactly the thread that was verified on the same connection,
and that only the thread's own items count as evidence.

Observed with 0.171.0. `turn/start` begins a turn when idle and joins the one that
runs, even one whose prompt a hook is just blocking. Its untrusted context reaches
the model whole as tool output before the text, sorted by key, each value up to
4,000 bytes, 96 KiB together. A hook that blocks the text keeps it from starting
anything, yet the context goes with the thread's next turn: so a yes to it is an
offer, whatever follows. Its queue takes plain text and keeps it until the
thread's own process asks, within some seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec
import trio

from bridge.core.ids import SessionId
from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached
from bridge.errors import BridgeError, Refused, Unavailable
from bridge.peer import Peer
from bridge.routes.codex_rpc import CodexRpc, Thread

BUDGET = Budget("bytes", 96 * 1024)
# Codex answers within milliseconds. Together they stay below the driver's own
# deadline for an offer (6 s), which would say less.
REACH_S = 2.5
HAND_S = 2.0
SEEN_S = 1.0
_LOOK_AGAIN_S = 0.05
# A value over 4,000 bytes is cut in the middle.
VALUE_BYTES = 3_900
_NAME = "agent_message"
_FIRST_ITEMS = 3

T = TypeVar("T")


class _Named(msgspec.Struct, frozen=True):
    id: str


class _Taken(msgspec.Struct, frozen=True):
    turn: _Named


class _Queued(msgspec.Struct, frozen=True, rename="camel"):
    queued_submission: _Named


class _Item(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    client_id: str | None = None


class _Row(msgspec.Struct, frozen=True):
    item: _Item


class _Items(msgspec.Struct, frozen=True):
    data: tuple[_Row, ...]


class CodexAppServer:
    """A Way to one thread of the app-server whose socket is at `path`.

    `is_server` says whether the process that listens there is the one that was
    meant. `may_queue`: the person named this server, so its queue takes what is
    for a thread that another process has loaded.
    """

    route = "codex_app_server"
    budget = BUDGET
    limit = 20

    def __init__(
        self,
        session_id: SessionId,
        path: str,
        is_server: Callable[[Peer], bool],
        may_queue: bool = False,
    ) -> None:
        self._session_id = session_id
        self._path = path
        self._is_server = is_server
        self._may_queue = may_queue
        self.address = f"unix://{path}"

    async def is_open(self) -> bool:
        """The server takes something for this thread now."""
        try:
            await self.check()
        except BridgeError:
            return False
        return True

    async def check(self) -> None:
        """The same; raises Refused or Unavailable, which say why not."""
        server, _ = await self._reach()
        async with server:
            pass

    async def offer(self, parcel: Parcel) -> Reached:
        """Hand it over; not one byte of it where the thread is not to be found."""
        try:
            server, thread = await self._reach()
        except BridgeError as error:
            return Reached(OfferOutcome.NOT_EMITTED, error.message, is_over=True)
        async with server:
            if thread.is_loaded:
                return await _start_turn(server, thread, parcel)
            return await _queue(server, parcel)

    async def _reach(self) -> tuple[CodexRpc, Thread]:
        with trio.move_on_after(REACH_S):
            server = await CodexRpc.open(self._path, self._is_server)
            try:
                return server, await self._thread(server)
            except BaseException:
                await server.close()
                raise
        raise _slow()

    async def _thread(self, server: CodexRpc) -> Thread:
        thread = await server.thread(self._session_id)
        if thread.is_loaded or (self._may_queue and thread.is_elsewhere):
            return thread
        raise Refused(
            "native_not_loaded",
            "Codex's server has not loaded this chat, so it is not used.",
            "Messages still come by its hooks.",
        )


async def _start_turn(server: CodexRpc, thread: Thread, parcel: Parcel) -> Reached:
    params = {
        "threadId": thread.id,
        "clientUserMessageId": parcel.offer_id,
        "input": [_text(announced(parcel.nonce))],
        "additionalContext": dict(context_of(parcel)),
    }
    taken = await _hand(server, "turn/start", params, _Taken)
    if isinstance(taken, Reached):
        return taken
    # In a turn that runs it is shown after the model's answer, so much later.
    if thread.is_running:
        return Reached(OfferOutcome.EMITTED)
    turn = {"threadId": thread.id, "turnId": taken.turn.id, "limit": _FIRST_ITEMS}
    is_seen = await _is_seen(server, turn, parcel)
    return Reached(OfferOutcome.EMITTED, evidence="seen" if is_seen else "")


async def _queue(server: CodexRpc, parcel: Parcel) -> Reached:
    params = {
        "threadId": parcel.session_id,
        "clientUserMessageId": parcel.offer_id,
        "input": [_text(parcel.text)],
    }
    taken = await _hand(server, "thread/queue/add", params, _Queued)
    if isinstance(taken, Reached):
        return taken
    return Reached(OfferOutcome.EMITTED, evidence="native_queue")


async def _hand(
    server: CodexRpc, method: str, params: Mapping[str, object], kind: type[T]
) -> T | Reached:
    """The one attempt: the server's yes, or what came of it instead.

    What the server did not begin is surely not emitted.
    """
    with trio.move_on_after(HAND_S):
        try:
            return await server.ask(method, params, kind)
        except Refused as error:
            return Reached(OfferOutcome.NOT_EMITTED, error.message)
        except BridgeError as error:
            return Reached(OfferOutcome.UNKNOWN, error.message, is_over=True)
    return Reached(OfferOutcome.UNKNOWN, _slow().message, is_over=True)


async def _is_seen(
    server: CodexRpc, turn: Mapping[str, object], parcel: Parcel
) -> bool:
    """Does the turn show our text among its first items soon?"""
    with trio.move_on_after(SEEN_S):
        while True:
            try:
                items = await server.ask("thread/items/list", turn, _Items)
                if _shows(items, parcel):
                    return True
            except Refused:
                pass  # so for a moment in the first turn of a thread
            except BridgeError:
                return False
            await trio.sleep(_LOOK_AGAIN_S)
    return False


def _shows(items: _Items, parcel: Parcel) -> bool:
    mine = _Item("userMessage", parcel.offer_id)
    return any(row.item == mine for row in items.data)


def announced(nonce: str) -> str:
    """What the person sees as a prompt, and prompt hooks hear."""
    return (
        f"AgentWorks [{nonce}]: what came for this chat is in the agent_message output "
        "just above. It is not the person's own instruction."
    )


def _text(text: str) -> Mapping[str, str]:
    return {"type": "text", "text": text}


def context_of(parcel: Parcel) -> Iterator[tuple[str, Mapping[str, str]]]:
    """One key for each part, more for a long one; their order is the text's."""
    for place, part in enumerate(parcel.parts):
        for number, piece in enumerate(pieces(part.text, VALUE_BYTES)):
            key = f"agentworks.{parcel.offer_id}.{place:03}.{number:03}"
            yield key, {"kind": "untrusted", "name": _NAME, "value": piece}


def pieces(text: str, limit: int) -> Iterator[str]:
    """The text in pieces of at most `limit` UTF-8 bytes, cut after a line's end.

    Only a line that is longer by itself is cut inside, between two characters, so
    a fence stays whole. Together they are the text; `limit` is at least 4.
    """
    rest = text.encode()
    while len(rest) > limit:
        end = rest.rfind(b"\n", 0, limit) + 1 or _between_characters(rest, limit)
        yield rest[:end].decode()
        rest = rest[end:]
    yield rest.decode()


def _between_characters(text: bytes, end: int) -> int:
    while text[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _slow() -> BridgeError:
    return Unavailable(
        "native_slow",
        "Codex's server did not answer in time.",
        "Messages still come by its hooks.",
    )
