"""Sending: one path for attached agents and for names used by a login.

Owns conversations, sequences and submission ids. Promises that a submission id
of one sender means one message for ever, that the sequences of a mailbox and of
a conversation are given in commit order, that two names share one conversation,
and that a message nobody admitted is never dropped to make room.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

from msgspec import Struct
from sqlalchemy import Row, bindparam, delete, func, insert, or_, select, update

from bridge.core.ids import fold_name, is_submission_id
from bridge.server import agents as names
from bridge.server.conversations import (
    next_sequence,
    opened,
    other_side,
    participated,
    reachable,
    require_incoming,
)
from bridge.server.parties import (
    Recipient,
    Side,
    agent_side,
    recipient_state,
    side_of_key,
)
from bridge.server.problems import Problem, invalid_arguments
from bridge.server.schema import agents, messages, submissions
from bridge.server.store import Unit

_HOUR_S = 3_600.0
_NEXT = "Keep inbox_id for what follows; a stored message is not yet a read one."


_SUBMITTED = select(submissions).where(
    submissions.c.sender_side == bindparam("side"),
    submissions.c.submission_id == bindparam("submission"),
)

_IN_CONVERSATION = messages.c.conversation_id == bindparam("conversation")

_COUNT = select(func.count()).select_from(messages).where(_IN_CONVERSATION)

# Both ends, so that a clock that was set back locks nobody out.
_RECENT = (
    select(messages.c.sent_at)
    .where(
        _IN_CONVERSATION,
        messages.c.sent_at > bindparam("since"),
        messages.c.sent_at <= bindparam("now"),
    )
    .order_by(messages.c.sent_at.desc())
    .limit(bindparam("most"))
)

_OLDEST_DROPPABLE = (
    select(messages.c.id)
    .where(
        _IN_CONVERSATION,
        or_(
            messages.c.delivery.in_(("admitted", "processed")),
            messages.c.recipient_id.is_(None),
            messages.c.retracted != "",
        ),
    )
    .order_by(messages.c.sequence)
    .limit(1)
)

_THIS_MAILBOX = agents.c.id == bindparam("agent")
_MAILBOX_UP = (
    update(agents).where(_THIS_MAILBOX).values(last_sequence=agents.c.last_sequence + 1)
)
_MAILBOX_COUNTED = select(agents.c.last_sequence).where(_THIS_MAILBOX)

_STORE_MESSAGE = insert(messages)
_STORE_SUBMISSION = insert(submissions)


class Outgoing(Struct, frozen=True):
    """What is to be sent. Exactly one of `target` and `inbox_id` is set.

    `is_reply_only`: by inbox, something from a currently authorised sender must
    have come in first (attached agents; a person's login is not bound by it).
    """

    message: str
    target: str | None = None
    inbox_id: str | None = None
    submission_id: str | None = None
    is_reply_only: bool = False


class Sent(Struct, frozen=True):
    """The receipt of an accepted message; `sequence` is the conversation's."""

    message_id: str
    inbox_id: str
    conversation_id: str
    sequence: int
    recipient: Recipient
    accepted: bool = True
    status: str = "accepted"
    next: str = _NEXT


def send(unit: Unit, sender: Side, connection_id: str, outgoing: Outgoing) -> Sent:
    """Store one message, or answer again for its submission id.

    Raises Problem: 400 for not exactly one address, 404 with nearest names, 409
    `submission_conflict` or `inbox_full`, 422 for text, id, self and reply
    rules, 429 `conversation_rate`.
    """
    if (outgoing.target is None) == (outgoing.inbox_id is None):
        raise invalid_arguments("Exactly one of target and inbox_id is needed.")
    body = checked_body(unit, outgoing.message)
    earlier = _earlier(unit, sender, outgoing, body)
    if earlier is not None:
        return earlier
    conversation, recipient = _conversation(unit, sender, outgoing)
    _require_room(unit, conversation.id)
    return _store(unit, sender, recipient, connection_id, conversation, outgoing, body)


def checked_body(unit: Unit, text: str) -> str:
    """The trimmed text, 1 to 20,000 characters; 422 otherwise."""
    body = text.strip()
    limit = unit.settings.message_characters
    if not 1 <= len(body) <= limit:
        raise Problem(
            422,
            "invalid_message",
            f"A message has 1 to {limit:,} characters and this one has "
            f"{len(body):,}, so it was not sent.",
            "Shorten it, or send it in parts." if body else "Give it a text.",
        )
    return body


def _address(outgoing: Outgoing) -> str:
    """What a submission id is bound to, besides its text."""
    if outgoing.inbox_id is not None:
        return outgoing.inbox_id
    name = fold_name((outgoing.target or "").strip())
    return name if name.startswith(names.ADDRESS_PREFIX) else f"agent:{name}"


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _earlier(unit: Unit, sender: Side, outgoing: Outgoing, body: str) -> Sent | None:
    """The answer this submission id already got; 409 for other content."""
    if outgoing.submission_id is None:
        return None
    if not is_submission_id(outgoing.submission_id):
        raise Problem(
            422,
            "invalid_submission_id",
            "A submission id has 1 to 128 printable ASCII characters.",
        )
    row = unit.row(_SUBMITTED, side=sender.key, submission=outgoing.submission_id)
    if row is None:
        return None
    if (row.address, row.body_hash) != (_address(outgoing), _hash(body)):
        raise Problem(
            409,
            "submission_conflict",
            "This submission id was already used for another message.",
            "Use a new submission id for a new message.",
        )
    recipient = side_of_key(unit, row.recipient_side, sender.account_id)
    return Sent(
        row.message_id,
        row.conversation_id,
        row.conversation_id,
        row.sequence,
        recipient_state(unit, recipient),
    )


def _conversation(
    unit: Unit, sender: Side, outgoing: Outgoing
) -> tuple[Row[Any], Side]:
    """The conversation to write into, and its other side."""
    if outgoing.inbox_id is not None:
        row = participated(unit, sender, outgoing.inbox_id)
        recipient = reachable(unit, other_side(unit, sender, row))
        if outgoing.is_reply_only:
            require_incoming(unit, sender, row.id)
        return row, recipient
    agent = names.addressed(unit, sender.account_id, outgoing.target or "")
    recipient = agent_side(agent)
    if recipient.key == sender.key:
        raise Problem(
            422, "self_send", "An agent cannot send a message to its own name."
        )
    return opened(unit, sender, recipient), recipient


def _require_room(unit: Unit, conversation_id: str) -> None:
    """Hold the hourly guard, then make room for one more message."""
    _hold_hourly_guard(unit, conversation_id)
    kept = unit.value(_COUNT, conversation=conversation_id)
    if kept < unit.settings.conversation_messages:
        return
    oldest = unit.value(_OLDEST_DROPPABLE, conversation=conversation_id)
    if oldest is None:
        raise Problem(
            409,
            "inbox_full",
            "This inbox is full of messages that were not admitted yet.",
            "Wait until the other side acknowledges some of them.",
        )
    unit.run(delete(messages).where(messages.c.id == oldest))


def _hold_hourly_guard(unit: Unit, conversation_id: str) -> None:
    limit = unit.settings.conversation_hourly
    recent = unit.rows(
        _RECENT,
        conversation=conversation_id,
        since=unit.now - _HOUR_S,
        now=unit.now,
        most=limit,
    )
    if len(recent) >= limit:
        wait_s = recent[-1].sent_at + _HOUR_S - unit.now
        raise Problem(
            429,
            "conversation_rate",
            f"This conversation had {limit} messages in the last hour, so it takes no"
            " more now: a guard against two agents answering each other for ever.",
            f"Send it again in {math.ceil(wait_s / 60)} min.",
            retry_after_s=wait_s,
        )


def _store(
    unit: Unit,
    sender: Side,
    recipient: Side,
    connection_id: str,
    conversation: Row[Any],
    outgoing: Outgoing,
    body: str,
) -> Sent:
    message_id = unit.new_id("msg")
    sequence = next_sequence(unit, conversation.id)
    unit.run(
        _STORE_MESSAGE,
        id=message_id,
        account_id=sender.account_id,
        conversation_id=conversation.id,
        sequence=sequence,
        sender_id=sender.agent_id,
        sender=sender.name,
        sender_provider=sender.provider,
        connection_id=connection_id,
        recipient_id=recipient.agent_id,
        mailbox_sequence=_next_in_mailbox(unit, recipient.agent_id),
        body=body,
        sent_at=unit.now,
    )
    if outgoing.submission_id is not None:
        unit.run(
            _STORE_SUBMISSION,
            sender_side=sender.key,
            submission_id=outgoing.submission_id,
            address=_address(outgoing),
            body_hash=_hash(body),
            message_id=message_id,
            conversation_id=conversation.id,
            sequence=sequence,
            recipient_side=recipient.key,
            sent_at=unit.now,
        )
    unit.wake(recipient.agent_id, conversation.id)
    return Sent(
        message_id,
        conversation.id,
        conversation.id,
        sequence,
        recipient_state(unit, recipient),
    )


def _next_in_mailbox(unit: Unit, agent_id: str | None) -> int | None:
    """The next number of a mailbox; an account side has none."""
    if agent_id is None:
        return None
    unit.run(_MAILBOX_UP, agent=agent_id)
    return int(unit.value(_MAILBOX_COUNTED, agent=agent_id))
