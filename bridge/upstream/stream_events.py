"""What an attachment's stream says, typed; one class per event.

Promises that an event is whole and in range, or is a Skipped that says which
place in the stream it stood at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from bridge.core.ids import InboxId, MessageId
from bridge.core.records import Message
from bridge.upstream.shapes import Id, Whole


class StreamEvent(Struct, frozen=True):
    """Base of all. `heard_at` is running seconds: a word counts from there."""

    heard_at: float


class Opened(StreamEvent, frozen=True):
    """The server took the stream; what follows starts at the cursor."""


class Arrived(StreamEvent, frozen=True):
    """A message, live or replayed; its arrival releases it."""

    message: Message


class Alive(StreamEvent, frozen=True):
    """The server stands by every unretracted message up to `through`."""

    through: int


class Retracted(StreamEvent, frozen=True):
    """The server no longer stands by these."""

    message_ids: tuple[MessageId, ...]
    reason: str


class ReceiptHeard(StreamEvent, frozen=True):
    """A message that this agent sent was admitted or processed."""

    number: int
    message_id: MessageId
    delivery: str


class LeaseChanged(StreamEvent, frozen=True):
    """The lease is over or held (replaced, revoked, held, unregistered)."""

    state: str


class Skipped(StreamEvent, frozen=True):
    """An event that could not be read; `sequence` is its place, 0 for none.

    The cursor moves past it: a message that no version of us can read must not
    stop those behind it.
    """

    sequence: int
    event: str
    reason: str


_Ids = Annotated[tuple[Id, ...], Meta(max_length=1000)]


class _Message(Struct):
    message_id: Id
    sequence: Whole
    inbox_id: Id
    conversation_id: str
    sender: str
    message: str
    sent_at: str
    sender_provider: str = ""


class _Alive(Struct):
    through: Whole


class _Retract(Struct):
    message_ids: _Ids
    reason: str


class _Receipt(Struct):
    number: Whole
    message_id: Id
    delivery: str


class _Lease(Struct):
    state: Id


def _message(text: str, heard_at: float) -> StreamEvent:
    said = msgspec.json.decode(text, type=_Message)
    message = Message(
        MessageId(said.message_id),
        said.sequence,
        InboxId(said.inbox_id),
        said.conversation_id,
        said.sender,
        said.sent_at,
        said.message,
        said.sender_provider,
    )
    return Arrived(heard_at, message)


def _alive(text: str, heard_at: float) -> StreamEvent:
    return Alive(heard_at, msgspec.json.decode(text, type=_Alive).through)


def _retract(text: str, heard_at: float) -> StreamEvent:
    said = msgspec.json.decode(text, type=_Retract)
    return Retracted(heard_at, tuple(map(MessageId, said.message_ids)), said.reason)


def _receipt(text: str, heard_at: float) -> StreamEvent:
    said = msgspec.json.decode(text, type=_Receipt)
    return ReceiptHeard(
        heard_at, said.number, MessageId(said.message_id), said.delivery
    )


def _lease(text: str, heard_at: float) -> StreamEvent:
    return LeaseChanged(heard_at, msgspec.json.decode(text, type=_Lease).state)


_READERS: dict[str, Callable[[str, float], StreamEvent]] = {
    "message": _message,
    "alive": _alive,
    "retract": _retract,
    "receipt": _receipt,
    "attachment": _lease,
}


def read_event(event: str, event_id: str, text: str, heard_at: float) -> StreamEvent:
    """One event as it came; never raises.

    `event_id` is the last id seen, so it is believed only for a message, whose
    own sequence it must equal.
    """
    place = _place(event_id) if event == "message" else 0
    reader = _READERS.get(event)
    if reader is None:
        return Skipped(heard_at, place, event, "unknown event")
    try:
        read = reader(text, heard_at)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Skipped(heard_at, place, event, str(error))
    if isinstance(read, Arrived) and read.message.sequence != place:
        return Skipped(heard_at, place, event, "id and sequence differ")
    return read


def _place(event_id: str) -> int:
    is_number = event_id.isascii() and event_id.isdigit() and len(event_id) <= 16
    return int(event_id) if is_number else 0
