"""Reading: pages of a mailbox or a conversation, and release.

Owns every view of message text but the stream's. Promises that reading
changes nothing, that a cursor of the wrong kind is refused, that an attached
agent sees only messages whose sender is of its account and currently
authorised, and that nothing is released which the server no longer stands by.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from sqlalchemy import Row, Select, or_, select
from sqlalchemy.sql.elements import ColumnElement

from bridge.clock import rfc3339
from bridge.server.conversations import of_account, participated
from bridge.server.limits import LARGEST_CURSOR, MAILBOX_START
from bridge.server.parties import (
    Recipient,
    Side,
    both_sides,
    recipient_state,
    sender_is_authorised,
)
from bridge.server.problems import wrong_cursor
from bridge.server.schema import messages
from bridge.server.store import Unit


class ReadMessage(Struct, frozen=True):
    """One message of a page; `sequence` is of the cursor's kind."""

    inbox_id: str
    conversation_id: str
    message_id: str
    sequence: int
    sender: str
    sender_provider: str
    reply_address: str
    message: str
    sent_at: str
    delivery: str
    delivery_error: str
    observed: str


class Page(Struct, frozen=True, omit_defaults=True):
    """What a read returns; `next_cursor` is `after` when nothing was found.

    `sides` says of the mailbox, or of both ends of the inbox, who is there; the
    person alone is told.
    """

    messages: list[ReadMessage]
    next_cursor: int
    inbox_id: str | None = None
    sides: list[Recipient] = []


class Reading(Struct, frozen=True):
    """Which page of whose messages; `is_filtered` for attached agents."""

    side: Side
    inbox_id: str | None
    after: int
    limit: int
    is_filtered: bool


def checked_mailbox_cursor(cursor: int) -> int:
    """0 or a mailbox sequence; 422 for anything else."""
    if cursor != 0 and not MAILBOX_START <= cursor <= LARGEST_CURSOR:
        raise wrong_cursor("mailbox")
    return cursor


def checked_conversation_cursor(cursor: int) -> int:
    """0 or a conversation sequence; 422 for anything else."""
    if not 0 <= cursor < MAILBOX_START:
        raise wrong_cursor("conversation")
    return cursor


def wake_key(reading: Reading) -> str:
    """What a waiting read waits for."""
    return reading.inbox_id or reading.side.key


def read(unit: Unit, reading: Reading) -> Page:
    """The page after the cursor; 404 for an inbox that is not this side's."""
    rows = unit.rows(_page(unit, reading))
    number = _number_of(reading)
    found = [_shown(row, getattr(row, number)) for row in rows]
    cursor = found[-1].sequence if found else reading.after
    return Page(found, cursor, reading.inbox_id, _sides(unit, reading))


def _sides(unit: Unit, reading: Reading) -> list[Recipient]:
    if reading.is_filtered:
        return []
    if reading.inbox_id is None:
        return [recipient_state(unit, reading.side)]
    conversation = of_account(unit, reading.side.account_id, reading.inbox_id)
    sides = both_sides(unit, conversation)
    return [recipient_state(unit, side) for side in sides]


def _number_of(reading: Reading) -> str:
    return "mailbox_sequence" if reading.inbox_id is None else "sequence"


def _page(unit: Unit, reading: Reading) -> Select[Any]:
    column = messages.c[_number_of(reading)]
    page = select(messages).order_by(column).limit(reading.limit)
    if reading.inbox_id is None:
        after = checked_mailbox_cursor(reading.after)
        page = page.where(messages.c.recipient_id == reading.side.agent_id)
    else:
        after = checked_conversation_cursor(reading.after)
        _require_access(unit, reading.side, reading.inbox_id)
        page = page.where(
            messages.c.conversation_id == reading.inbox_id,
            _not_own(reading.side),
        )
    page = page.where(column > after)
    if reading.is_filtered:
        page = page.where(
            messages.c.account_id == reading.side.account_id, sender_is_authorised()
        )
    return page


def _require_access(unit: Unit, side: Side, inbox_id: str) -> None:
    """A name reads its own inboxes; a nameless login any of its account."""
    if side.agent_id is not None:
        participated(unit, side, inbox_id)
    else:
        of_account(unit, side.account_id, inbox_id)


def _not_own(side: Side) -> ColumnElement[bool]:
    if side.agent_id is None:
        return messages.c.sender_id.is_not(None)
    return or_(messages.c.sender_id.is_(None), messages.c.sender_id != side.agent_id)


def _shown(row: Row[Any], number: int) -> ReadMessage:
    return ReadMessage(
        inbox_id=row.conversation_id,
        conversation_id=row.conversation_id,
        message_id=row.id,
        sequence=number,
        sender=row.sender,
        sender_provider=row.sender_provider,
        reply_address=row.conversation_id,
        message=row.body,
        sent_at=rfc3339(row.sent_at),
        delivery=row.delivery,
        delivery_error=row.retracted,
        observed=row.observed,
    )


# ---- release ---------------------------------------------------------------


class Withheld(Struct, frozen=True):
    """A message that must not be shown, and why."""

    id: str
    reason: str


class Released(Struct, frozen=True):
    """The server's word on cached messages; good for `valid_s` from the request."""

    released: list[str]
    withheld: list[Withheld]
    valid_s: int


def release(unit: Unit, agent_id: str, message_ids: list[str]) -> Released:
    """Say for each message of this agent's mailbox whether it may be shown."""
    found = unit.rows(
        select(
            messages.c.id,
            messages.c.retracted,
            sender_is_authorised().label("is_authorised"),
        ).where(messages.c.id.in_(message_ids), messages.c.recipient_id == agent_id)
    )
    by_id = {row.id: row for row in found}
    released = []
    withheld = []
    for message_id in dict.fromkeys(message_ids):
        reason = _reason(by_id.get(message_id))
        if reason:
            withheld.append(Withheld(message_id, reason))
        else:
            released.append(message_id)
    return Released(released, withheld, unit.settings.release_valid_s)


def _reason(row: Row[Any] | None) -> str:
    """Why it is withheld, or empty."""
    if row is None:
        return "not_found"
    if row.retracted:
        return str(row.retracted)
    # What was acknowledged is not retracted, yet not shown again either.
    return "" if row.is_authorised else "sender_not_authorised"
