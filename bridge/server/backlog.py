"""What a stream still has to be told: one look, in one read transaction.

Owns the queries behind a stream. Promises that a look sees one moment of the
database, so that a retraction is told before any word that would release its
message; that messages come oldest first and in pages; and that a message which
this agent id already reported, or whose sender lost its authority, is skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs
from sqlalchemy import Row, bindparam, select

from bridge.clock import rfc3339
from bridge.server import auth
from bridge.server.leases import CURRENT, HELD, LeaseState, is_held
from bridge.server.parties import sender_is_authorised
from bridge.server.schema import (
    agents,
    attachments,
    connections,
    messages,
    receipts,
)
from bridge.server.store import Unit

_RETRACTION_PAGE = 100
_RECEIPT_PAGE = 100

# What the wire calls the end of a lease; a stream has no word for "detached".
_WORDS = {
    LeaseState.REPLACED.value: "replaced",
    LeaseState.REVOKED.value: "revoked",
    LeaseState.DETACHED.value: "revoked",
    LeaseState.UNREGISTERED.value: "unregistered",
}


_STATE = select(
    attachments.c.state,
    agents.c.policy,
    auth.usable(bindparam("now")).label("is_usable"),
).where(
    attachments.c.id == bindparam("attachment_id"),
    attachments.c.agent_id == agents.c.id,
    connections.c.id == bindparam("connection_id"),
    connections.c.agent_id == attachments.c.agent_id,
)

_RETRACTIONS = (
    select(messages.c.id, messages.c.retracted, messages.c.retraction)
    .where(
        messages.c.recipient_id == bindparam("agent_id"),
        messages.c.retraction > bindparam("retraction"),
        messages.c.mailbox_sequence <= bindparam("cursor"),
        messages.c.delivery.in_(("stored", "typed")),
    )
    .order_by(messages.c.retraction, messages.c.mailbox_sequence)
)

_RECEIPTS = (
    select(receipts)
    .where(
        receipts.c.agent_id == bindparam("agent_id"),
        receipts.c.number > bindparam("receipt"),
    )
    .order_by(receipts.c.number)
    .limit(_RECEIPT_PAGE)
)

_MESSAGES = (
    select(messages)
    .where(
        messages.c.recipient_id == bindparam("agent_id"),
        messages.c.mailbox_sequence > bindparam("cursor"),
        messages.c.delivery == "stored",
        messages.c.observed == "",
        messages.c.retracted == "",
        sender_is_authorised(),
    )
    .order_by(messages.c.mailbox_sequence)
    .limit(bindparam("page"))
)


class Place(Struct, frozen=True):
    """How far one stream has come.

    `cursor` is a mailbox sequence, `receipt` a receipt number, `retraction` the
    last retraction told on this stream.
    """

    attachment_id: str
    agent_id: str
    connection_id: str
    cursor: int
    receipt: int
    retraction: int = 0
    has_messages: bool = True


class Frame(Struct, frozen=True):
    """One event: its name, its body, and for a message its id."""

    event: str
    body: dict[str, Any]
    id: int | None = None


class Look(Struct, frozen=True):
    """What was found: frames in order, where the stream then is, and what next.

    `is_over`: close after these. `has_more`: look again at once.
    """

    frames: list[Frame]
    place: Place
    is_over: bool = False
    has_more: bool = False


def look(unit: Unit, place: Place) -> Look:
    """All that this stream can be told now, at most one page of messages."""
    ended = _ended(unit, place)
    if ended is not None:
        return Look(ended, place, is_over=True)
    retracted = _retractions(unit, place)
    told = _receipts(unit, place)
    page = _page(unit, place) if place.has_messages else []
    frames = [*_retract_frames(retracted), *map(_receipt, told), *map(_message, page)]
    next_place = structs.replace(
        place,
        cursor=page[-1].mailbox_sequence if page else place.cursor,
        receipt=told[-1].number if told else place.receipt,
        retraction=retracted[-1].retraction if retracted else place.retraction,
    )
    is_full = len(page) == unit.settings.replay_page or len(told) == _RECEIPT_PAGE
    return Look(frames, next_place, has_more=is_full)


def _ended(unit: Unit, place: Place) -> list[Frame] | None:
    """The last frame of a lease that is over or held; None while it goes on."""
    row = unit.row(
        _STATE,
        attachment_id=place.attachment_id,
        connection_id=place.connection_id,
        now=unit.now,
    )
    if row is None:
        return []
    if row.state not in CURRENT:
        return [Frame("attachment", {"state": _WORDS[row.state]})]
    if is_held(unit, row):
        return [Frame("attachment", {"state": HELD})]
    # Paused, or its child was renewed: the body just ends.
    if row.state == LeaseState.OFFLINE or not row.is_usable:
        return []
    return None


def _retractions(unit: Unit, place: Place) -> Sequence[Row[Any]]:
    """Messages at or below the cursor that the server no longer stands by."""
    return unit.rows(
        _RETRACTIONS,
        agent_id=place.agent_id,
        retraction=place.retraction,
        cursor=place.cursor,
    )


def _retract_frames(rows: Sequence[Row[Any]]) -> list[Frame]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        by_reason[row.retracted].append(row.id)
    return [
        Frame(
            "retract",
            {"message_ids": ids[start : start + _RETRACTION_PAGE], "reason": reason},
        )
        for reason, ids in by_reason.items()
        for start in range(0, len(ids), _RETRACTION_PAGE)
    ]


def _receipts(unit: Unit, place: Place) -> Sequence[Row[Any]]:
    return unit.rows(_RECEIPTS, agent_id=place.agent_id, receipt=place.receipt)


def _receipt(row: Row[Any]) -> Frame:
    return Frame(
        "receipt",
        {
            "number": row.number,
            "message_id": row.message_id,
            "delivery": row.delivery,
        },
    )


def _page(unit: Unit, place: Place) -> Sequence[Row[Any]]:
    return unit.rows(
        _MESSAGES,
        agent_id=place.agent_id,
        cursor=place.cursor,
        page=unit.settings.replay_page,
    )


def _message(row: Row[Any]) -> Frame:
    return Frame(
        "message",
        {
            "message_id": row.id,
            "sequence": row.mailbox_sequence,
            "inbox_id": row.conversation_id,
            "conversation_id": row.conversation_id,
            "sender": row.sender,
            "sender_provider": row.sender_provider,
            "reply_address": row.conversation_id,
            "message": row.body,
            "sent_at": rfc3339(row.sent_at),
        },
        row.mailbox_sequence,
    )
