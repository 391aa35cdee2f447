"""Reading: pages of a mailbox or a conversation, release, and what became of it.

Owns every view of stored messages but the stream's. Promises that reading
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
from bridge.server.conversations import participated
from bridge.server.limits import LARGEST_CURSOR, MAILBOX_START
from bridge.server.parties import (
    Recipient,
    Side,
    recipient_state,
    sender_is_authorised,
    side_of_key,
)
from bridge.server.problems import not_found, wrong_cursor
from bridge.server.schema import conversations, messages, submissions
from bridge.server.store import Unit

FORGOTTEN = "forgotten"
_STATE_ROWS = 20


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


class Page(Struct, frozen=True, omit_defaults=True):
    """What a read returns; `next_cursor` is `after` when nothing was found."""

    messages: list[ReadMessage]
    next_cursor: int
    inbox_id: str | None = None


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
    return Page(found, cursor, reading.inbox_id)


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
        _of_account(unit, side.account_id, inbox_id)


def _of_account(unit: Unit, account_id: str, inbox_id: str) -> Row[Any]:
    row = unit.row(
        select(conversations).where(
            conversations.c.id == inbox_id, conversations.c.account_id == account_id
        )
    )
    if row is None:
        raise not_found("There is no inbox of that id that you may use.")
    return row


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


# ---- what became of a sent message -----------------------------------------


class SentStatus(Struct, frozen=True):
    """What is known of a message this side sent.

    `delivery` is stored, typed, admitted, processed, or forgotten when the
    conversation's limit dropped it. `delivery_error` is why it was retracted.
    """

    message_id: str
    submission_id: str | None
    inbox_id: str
    conversation_id: str
    sequence: int
    recipient: Recipient
    sent_at: str
    delivery: str
    observed: str
    delivery_error: str


def sent_status(unit: Unit, side: Side, message_or_submission_id: str) -> SentStatus:
    """Look it up by message id or submission id, for an agent's side; 404 when it
    sent neither.
    """
    submission = unit.row(
        select(submissions).where(
            submissions.c.sender_side == side.key,
            or_(
                submissions.c.submission_id == message_or_submission_id,
                submissions.c.message_id == message_or_submission_id,
            ),
        )
    )
    message_id = submission.message_id if submission else message_or_submission_id
    row = unit.row(
        select(messages).where(
            messages.c.id == message_id,
            messages.c.account_id == side.account_id,
            messages.c.sender_id == side.agent_id,
        )
    )
    if row is not None:
        return _status(unit, row, submission.submission_id if submission else None)
    if submission is not None:
        return _forgotten(unit, side, submission)
    raise not_found("You sent no message of that id.")


def _status(unit: Unit, row: Row[Any], submission_id: str | None) -> SentStatus:
    conversation = _of_account(unit, row.account_id, row.conversation_id)
    sender_key = row.sender_id or row.sender
    is_opener = conversation.opener == sender_key
    key = conversation.other if is_opener else conversation.opener
    return SentStatus(
        message_id=row.id,
        submission_id=submission_id,
        inbox_id=row.conversation_id,
        conversation_id=row.conversation_id,
        sequence=row.sequence,
        recipient=recipient_state(unit, side_of_key(unit, key, row.account_id)),
        sent_at=rfc3339(row.sent_at),
        delivery=row.delivery,
        observed=row.observed,
        delivery_error=row.retracted,
    )


def _forgotten(unit: Unit, side: Side, submission: Row[Any]) -> SentStatus:
    recipient = side_of_key(unit, submission.recipient_side, side.account_id)
    return SentStatus(
        message_id=submission.message_id,
        submission_id=submission.submission_id,
        inbox_id=submission.conversation_id,
        conversation_id=submission.conversation_id,
        sequence=submission.sequence,
        recipient=recipient_state(unit, recipient),
        sent_at=rfc3339(submission.sent_at),
        delivery=FORGOTTEN,
        observed="",
        delivery_error="",
    )


class DeliveryRecord(Struct, frozen=True):
    """One line of an inbox's state: never a body."""

    message_id: str
    sequence: int
    sender: str
    recipient: str
    sent_at: str
    delivery: str
    observed: str
    delivery_error: str


class InboxState(Struct, frozen=True):
    """An inbox's newest deliveries, oldest first."""

    inbox_id: str
    participants: list[str]
    created_at: str
    messages: list[DeliveryRecord]


def inbox_state(unit: Unit, account_id: str, inbox_id: str) -> InboxState:
    """The last 20 deliveries of an inbox of this account, without bodies."""
    conversation = _of_account(unit, account_id, inbox_id)
    sides = [
        side_of_key(unit, key, account_id)
        for key in (conversation.opener, conversation.other)
    ]
    newest = unit.rows(
        select(messages)
        .where(messages.c.conversation_id == inbox_id)
        .order_by(messages.c.sequence.desc())
        .limit(_STATE_ROWS)
    )
    records = [_record(row, sides) for row in reversed(newest)]
    return InboxState(
        inbox_id,
        [side.name for side in sides],
        rfc3339(conversation.created_at),
        records,
    )


def _record(row: Row[Any], sides: list[Side]) -> DeliveryRecord:
    recipients = [side.name for side in sides if side.agent_id == row.recipient_id]
    return DeliveryRecord(
        message_id=row.id,
        sequence=row.sequence,
        sender=row.sender,
        recipient=recipients[0],
        sent_at=rfc3339(row.sent_at),
        delivery=row.delivery,
        observed=row.observed,
        delivery_error=row.retracted,
    )
