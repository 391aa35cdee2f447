"""What became of messages: one that was sent, and an inbox's last deliveries.

Owns the views that hold no message text. Promises that a sender learns only of
what it sent itself, and that a message dropped for room is still accounted for
by its submission id.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from sqlalchemy import Row, or_, select

from bridge.clock import rfc3339
from bridge.server.conversations import of_account
from bridge.server.parties import (
    Recipient,
    Side,
    both_sides,
    recipient_state,
    side_of_key,
)
from bridge.server.problems import not_found
from bridge.server.schema import messages, submissions
from bridge.server.store import Unit

FORGOTTEN = "forgotten"
_STATE_ROWS = 20


class SentStatus(Struct, frozen=True):
    """What is known of a message this side sent.

    `delivery` is stored, typed, admitted, processed, or forgotten when the
    conversation's limit dropped it; `delivery_at` is when its receipt was given.
    `delivery_error` is why it was retracted.
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
    delivery_at: str | None = None


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
    conversation = of_account(unit, row.account_id, row.conversation_id)
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
        delivery_at=_moment(row.delivery_at),
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
    delivery_at: str | None


class InboxState(Struct, frozen=True):
    """An inbox's newest deliveries, oldest first; `sides` says who is there."""

    inbox_id: str
    participants: list[str]
    created_at: str
    messages: list[DeliveryRecord]
    sides: list[Recipient]


def inbox_state(unit: Unit, account_id: str, inbox_id: str) -> InboxState:
    """The last 20 deliveries of an inbox of this account, without bodies."""
    conversation = of_account(unit, account_id, inbox_id)
    sides = both_sides(unit, conversation)
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
        [recipient_state(unit, side) for side in sides],
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
        delivery_at=_moment(row.delivery_at),
    )


def _moment(at: float | None) -> str | None:
    return None if at is None else rfc3339(at)
