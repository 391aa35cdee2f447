"""Conversations: their two sides, who may write into one, and its numbers.

Owns the conversations' rows. Promises that two names share one conversation,
that only its sides reach it, that a name which was given up is never confused
with its next holder, and that sequences are given in commit order.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, bindparam, insert, or_, select, update

from bridge.server import agents as names
from bridge.server.parties import Side, sender_is_authorised, side_of_key
from bridge.server.problems import Problem, not_found
from bridge.server.schema import conversations, messages
from bridge.server.store import Unit

_BY_PAIR = select(conversations).where(conversations.c.pair == bindparam("pair"))

_THIS_CONVERSATION = conversations.c.id == bindparam("conversation")
_COUNT_UP = (
    update(conversations)
    .where(_THIS_CONVERSATION)
    .values(last_sequence=conversations.c.last_sequence + 1)
)
_COUNTED = select(conversations.c.last_sequence).where(_THIS_CONVERSATION)


def participated(unit: Unit, side: Side, inbox_id: str) -> Row[Any]:
    """A conversation this side takes part in; 404 otherwise."""
    row = unit.row(
        select(conversations).where(
            conversations.c.id == inbox_id,
            conversations.c.account_id == side.account_id,
            or_(conversations.c.opener == side.key, conversations.c.other == side.key),
        )
    )
    if row is None:
        raise not_found("There is no inbox of that id that you may use.")
    return row


def of_account(unit: Unit, account_id: str, inbox_id: str) -> Row[Any]:
    """A conversation of this account, whoever takes part; 404 otherwise."""
    row = unit.row(
        select(conversations).where(
            conversations.c.id == inbox_id, conversations.c.account_id == account_id
        )
    )
    if row is None:
        raise not_found("There is no inbox of that id that you may use.")
    return row


def other_side(unit: Unit, side: Side, conversation: Row[Any]) -> Side:
    """The side across from this one."""
    is_opener = conversation.opener == side.key
    key = conversation.other if is_opener else conversation.opener
    return side_of_key(unit, key, conversation.account_id)


def reachable(unit: Unit, side: Side) -> Side:
    """404 when its name was unregistered: a new holder is someone else."""
    if side.agent_id is not None:
        agent = names.by_id(unit, side.agent_id)
        if agent.unregistered_at is not None:
            raise not_found("The agent of this inbox is no longer registered.")
    return side


def require_incoming(unit: Unit, reader: Side, conversation_id: str) -> None:
    incoming = select(messages.c.id).where(
        messages.c.conversation_id == conversation_id,
        messages.c.recipient_id == reader.agent_id,
        messages.c.account_id == reader.account_id,
        sender_is_authorised(),
    )
    if unit.row(incoming.limit(1)) is None:
        raise Problem(
            422,
            "no_incoming_message",
            "Nothing from a currently authorised sender is in that inbox.",
            "Send to the agent's name instead.",
        )


def opened(unit: Unit, sender: Side, recipient: Side) -> Row[Any]:
    """The conversation of two names, or a new one. A nameless login always
    opens a new one.
    """
    pair = None
    if sender.agent_id is not None:
        pair = "|".join(sorted((sender.key, recipient.key)))
        row = unit.row(_BY_PAIR, pair=pair)
        if row is not None:
            return row
    inbox_id = unit.new_id("inbox")
    unit.run(
        insert(conversations).values(
            id=inbox_id,
            account_id=sender.account_id,
            opener=sender.key,
            other=recipient.key,
            pair=pair,
            created_at=unit.now,
        )
    )
    row = unit.row(select(conversations).where(conversations.c.id == inbox_id))
    assert row is not None  # noqa: S101 - written two lines above
    return row


def next_sequence(unit: Unit, conversation_id: str) -> int:
    unit.run(_COUNT_UP, conversation=conversation_id)
    return int(unit.value(_COUNTED, conversation=conversation_id))
