"""An extension of ours inside of an agent's program, as a native way.

Owns the JSON lines of one `route` connection: an offer out, what became of it and
whether the chat is idle in. Promises one offer out at a time, that an offer of
which not one byte was written is NotEmitted, and that one whose answer did not
come in time, or whose connection closed, is Unknown; then the way is over, since
whoever was silent may still be about to answer.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
import trio
from msgspec import Struct

from bridge.core.ids import OfferId, SessionId
from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached
from bridge.errors import Invalid, Unavailable

ANSWER_S = 5.0
LINE_LIMIT = 4096  # bytes of one line of the extension
REASON_LIMIT = 200  # characters that are kept of its reason
BUDGET = Budget("bytes", 96 * 1024)


class Writer(Protocol):
    """The sending half of the extension's connection."""

    async def send(self, frame: bytes) -> None:
        """Write it whole, within a deadline of its own; raises Unavailable."""
        ...


class Said(Struct, frozen=True):
    """One line of the extension; a newer one may say more."""

    emitted: str = ""
    not_emitted: str = ""
    reason: str = ""
    idle: bool | None = None


class Lines:
    """What arrives of a connection, cut into lines; raises Invalid for too long."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[Said]:
        """The lines that are whole now; raises Invalid for one that is none."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if any(len(line) > LINE_LIMIT for line in (*whole, self._rest)):
            raise _garbage("a line that is too long")
        return [_read(line) for line in whole]


class AdapterWay:
    """A Way into one chat; `hear` is given what the extension says.

    `over` is set when this way leads nowhere any more: its connection is to be
    closed then.
    """

    route = "adapter"
    budget = BUDGET
    limit = 20

    def __init__(
        self, provider: str, session_id: SessionId, pid: int, writer: Writer
    ) -> None:
        self.address = f"{provider}+extension://{pid}/{session_id}"
        self.over = trio.Event()
        self._writer = writer
        self._turn = trio.Lock()
        self._out: OfferId | None = None
        self._answer: Reached | None = None
        self._changed = trio.Event()

    async def is_open(self) -> bool:
        """See Way: as long as the connection is."""
        return not self.over.is_set()

    async def offer(self, parcel: Parcel) -> Reached:
        """See Way."""
        async with self._turn:
            if self.over.is_set():
                why = "the extension is not connected any more"
                return Reached(OfferOutcome.NOT_EMITTED, why, is_over=True)
            self._out, self._answer = parcel.offer_id, None
            self._changed = trio.Event()
            try:
                return await self._attempt(parcel)
            finally:
                self._out = None

    async def _attempt(self, parcel: Parcel) -> Reached:
        offer = {"offer": parcel.offer_id, "text": parcel.text}
        with trio.move_on_after(ANSWER_S):
            try:
                await self._writer.send(msgspec.json.encode(offer) + b"\n")
            except Unavailable:
                return self._gave_up("the extension went away while it was written to")
            await self._changed.wait()
            if self._answer is not None:
                return self._answer
            return self._gave_up("the extension went away before it answered")
        return self._gave_up("the extension did not answer in time")

    def _gave_up(self, why: str) -> Reached:
        self.end()
        return Reached(OfferOutcome.UNKNOWN, why, is_over=True)

    def hear(self, said: Said) -> None:
        """Take in one line; an answer to anything but the offer out is nothing."""
        if self._out is None or self._out not in (said.emitted, said.not_emitted):
            return
        if said.emitted:
            self._answer = Reached(OfferOutcome.EMITTED)
        else:
            why = said.reason[:REASON_LIMIT] or "the program did not take it"
            self._answer = Reached(OfferOutcome.NOT_EMITTED, why)
        self._changed.set()

    def end(self) -> None:
        """The connection is closed, or is to be."""
        self.over.set()
        self._changed.set()


def _read(line: bytes) -> Said:
    try:
        return msgspec.json.decode(line, type=Said)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _garbage("a line that is no answer") from error


def _garbage(what: str) -> Invalid:
    return Invalid(
        "bad_line",
        f"An extension of an agent's program sent {what}, so it was disconnected.",
        "Set the project up again: agentworks attach",
    )
