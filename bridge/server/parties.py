"""The two sides of a conversation, and whether a sender still has authority.

Owns the notion of a side: an agent, or an account (its person's login with no
name). Promises that one expression decides "currently authorised" everywhere it
matters: replay, release, filtered reads and replies.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from sqlalchemy import Row, or_, select
from sqlalchemy.sql.elements import ColumnElement

from bridge.clock import rfc3339
from bridge.server import agents as names
from bridge.server.auth import Caller, Reason
from bridge.server.leases import HELD, is_held
from bridge.server.schema import accounts, agents, connections, messages
from bridge.server.store import Unit

_ACCOUNT_PREFIX = "account:"


class Side(Struct, frozen=True):
    """One side: `key` is an agent id, or `account:<id>` when `agent_id` is None."""

    key: str
    account_id: str
    name: str
    agent_id: str | None = None
    provider: str = ""


class Recipient(Struct, frozen=True):
    """Where a message goes: connected, offline, held, or mailbox (never attached).

    `offline_since` is when its session was last there; None while it is there, and
    for a mailbox.
    """

    name: str
    state: str
    since: str | None
    offline_since: str | None = None


def account_side(account_id: str) -> Side:
    """The person's login itself, which uses no name."""
    key = _ACCOUNT_PREFIX + account_id
    return Side(key, account_id, key)


def agent_side(agent: Row[Any]) -> Side:
    """A named agent."""
    return Side(agent.id, agent.account_id, agent.name, agent.id, agent.provider)


def side_of_key(unit: Unit, key: str, account_id: str) -> Side:
    """The side that a conversation row names."""
    if key.startswith(_ACCOUNT_PREFIX):
        return account_side(account_id)
    return agent_side(names.by_id(unit, key))


def both_sides(unit: Unit, conversation: Row[Any]) -> list[Side]:
    """The two sides of a conversation, who opened it first."""
    keys = (conversation.opener, conversation.other)
    return [side_of_key(unit, key, conversation.account_id) for key in keys]


def acting_side(unit: Unit, caller: Caller, agent_name: str | None) -> Side:
    """Whom a person's login speaks for: one of its names, or the account."""
    if agent_name is None:
        return account_side(caller.account_id)
    return agent_side(names.named(unit, caller, agent_name))


def recipient_state(unit: Unit, side: Side) -> Recipient:
    """What is known of the side a message goes to."""
    if side.agent_id is None:
        return Recipient(side.name, "mailbox", None)
    agent = names.by_id(unit, side.agent_id)
    since = names.since(agent)
    if agent.seen_at is None:
        return Recipient(side.name, "mailbox", None)
    is_there = names.is_connected(unit, agent)
    state = "connected" if is_there else "offline"
    if agent.attachment_id is not None and is_held(unit, agent):
        state = HELD
    return Recipient(side.name, state, since, None if is_there else since)


def sender_is_authorised() -> ColumnElement[bool]:
    """SQL on `messages`: its sender may still speak to its recipient.

    The name is registered, the account enabled, and the connection that sent it
    was not revoked by the person. Offline, detached or expired senders are fine.
    """
    unregistered = (
        select(agents.c.id)
        .where(
            agents.c.id == messages.c.sender_id,
            agents.c.unregistered_at.is_not(None),
        )
        .exists()
    )
    revoked = (
        select(connections.c.id)
        .where(
            connections.c.id == messages.c.connection_id,
            connections.c.revoked_reason == Reason.PERSON.value,
        )
        .exists()
    )
    enabled = (
        select(accounts.c.id)
        .where(accounts.c.id == messages.c.account_id, accounts.c.disabled_at.is_(None))
        .exists()
    )
    return enabled & ~revoked & or_(messages.c.sender_id.is_(None), ~unregistered)


def sent_at(row: Row[Any]) -> str:
    """A message's time as the wire shows it."""
    return rfc3339(row.sent_at)
