"""Leases: what state one is in, how one ends, and what its end takes back.

Owns the attachments' state. Promises that an agent has at most one current
lease (`agents.attachment_id`), that an ended lease never becomes current again,
and that whoever holds its stream is woken. Ends that the person decided about a
sender also retract what that sender sent and nobody acknowledged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from sqlalchemy import Row, bindparam, select, update
from sqlalchemy.sql.elements import ColumnElement

from bridge.server import auth
from bridge.server.auth import Caller, Reason
from bridge.server.problems import Problem, gone, not_found
from bridge.server.schema import accounts, agents, attachments, connections, messages
from bridge.server.store import Unit


class LeaseState(StrEnum):
    """ATTACHED and OFFLINE are current; the others are final."""

    ATTACHED = "attached"
    OFFLINE = "offline"
    REPLACED = "replaced"
    REVOKED = "revoked"
    DETACHED = "detached"
    UNREGISTERED = "unregistered"


CURRENT = (LeaseState.ATTACHED, LeaseState.OFFLINE)
HELD = "held"

ACCOUNT_DISABLED = "account_disabled"
CONNECTION_REVOKED = "connection_revoked"
NAME_UNREGISTERED = "name_unregistered"


def lease(unit: Unit, attachment_id: str | None) -> Row[Any] | None:
    """The attachment's row, or None."""
    if attachment_id is None:
        return None
    return unit.row(select(attachments).where(attachments.c.id == attachment_id))


_LEASE_OF_AGENT = select(
    attachments.c.id.label("lease_id"),
    attachments.c.state.label("lease_state"),
    attachments.c.child_id,
    agents,
).where(
    attachments.c.id == bindparam("lease_id"),
    attachments.c.agent_id == bindparam("agent_id"),
    attachments.c.agent_id == agents.c.id,
)


def any_lease(unit: Unit, caller: Caller, attachment_id: str) -> Row[Any]:
    """A lease of this child's agent in whatever state, joined with its agent.

    404 for another agent's, and for a current one that another child holds. The
    row has the attachment's `lease_id` and `lease_state` and the whole agent.
    """
    row = unit.row(_LEASE_OF_AGENT, lease_id=attachment_id, agent_id=caller.child())
    if row is None:
        raise not_found()
    if row.lease_state in CURRENT and row.child_id != caller.connection_id:
        raise not_found()
    return row


def own_lease(unit: Unit, caller: Caller, attachment_id: str) -> Row[Any]:
    """The current lease that this child holds; 410 when it is over."""
    row = any_lease(unit, caller, attachment_id)
    if row.lease_state not in CURRENT:
        raise gone(row.lease_state)
    return row


def is_held(unit: Unit, agent: Row[Any]) -> bool:
    """True while the person has not confirmed the server's newer policy."""
    return bool(agent.policy < unit.settings.policy)


def require_confirmed(unit: Unit, agent: Row[Any]) -> None:
    """409 while held: nothing is delivered, read or sent."""
    if is_held(unit, agent):
        raise Problem(
            409,
            HELD,
            "This attachment waits for its person, since who may send changed.",
            "The person confirms it by attaching the chat again.",
        )


def set_state(unit: Unit, attachment_id: str, state: LeaseState) -> None:
    """Write a current lease's state; final ones are not touched."""
    unit.run(
        update(attachments)
        .where(attachments.c.id == attachment_id, attachments.c.state.in_(CURRENT))
        .values(state=state.value)
    )


def end_lease(unit: Unit, agent_id: str, state: LeaseState) -> None:
    """End the agent's current lease, if it has one, and wake its stream."""
    attachment_id = unit.value(
        select(agents.c.attachment_id).where(agents.c.id == agent_id)
    )
    if attachment_id is None:
        return
    set_state(unit, attachment_id, state)
    unit.presence.forget(attachment_id)
    values: dict[str, Any] = {"attachment_id": None}
    if unit.presence.is_connected(attachment_id):
        values["seen_at"] = unit.now
    unit.run(update(agents).where(agents.c.id == agent_id).values(**values))
    unit.wake(agent_id)


def go_offline(unit: Unit, agent: Row[Any]) -> None:
    """Pause the lease: the name may be moved by a person's attach."""
    set_state(unit, agent.lease_id, LeaseState.OFFLINE)
    unit.run(update(agents).where(agents.c.id == agent.id).values(seen_at=unit.now))
    unit.wake(agent.id)


def detach(unit: Unit, caller: Caller, attachment_id: str) -> None:
    """End the lease and its child; the name stays. Repeating it is harmless."""
    row = lease(unit, attachment_id)
    if row is None or row.account_id != caller.account_id:
        raise not_found()
    if caller.agent_id not in {None, row.agent_id}:
        raise not_found()
    if row.state not in CURRENT:
        return
    end_lease(unit, row.agent_id, LeaseState.DETACHED)
    if row.child_id is not None:
        auth.end(unit, row.child_id, Reason.DETACHED)


def unregister(unit: Unit, agent: Row[Any]) -> None:
    """Give up the name: its lease, its children and its unread messages end."""
    end_lease(unit, agent.id, LeaseState.UNREGISTERED)
    children = select(connections.c.id).where(connections.c.agent_id == agent.id)
    for child in unit.rows(children):
        auth.end(unit, child.id, Reason.UNREGISTERED)
    unit.run(
        update(agents).where(agents.c.id == agent.id).values(unregistered_at=unit.now)
    )
    retract(unit, messages.c.sender_id == agent.id, NAME_UNREGISTERED)


def revoke(unit: Unit, connection_id: str, reason: Reason) -> None:
    """End a connection and its children, with the leases that rest on them.

    By the person's word their unacknowledged messages are retracted too.
    """
    family = unit.rows(
        select(connections.c.id).where(
            (connections.c.id == connection_id)
            | (connections.c.parent_id == connection_id)
        )
    )
    for member in family:
        auth.end(unit, member.id, reason)
        held = select(attachments.c.agent_id).where(
            attachments.c.child_id == member.id, attachments.c.state.in_(CURRENT)
        )
        for row in unit.rows(held):
            end_lease(unit, row.agent_id, LeaseState.REVOKED)
        if reason == Reason.PERSON:
            retract(unit, messages.c.connection_id == member.id, CONNECTION_REVOKED)


def disable_account(unit: Unit, account_id: str) -> None:
    """Stop everything of an account; what it sent is retracted. For operators."""
    unit.run(
        update(accounts).where(accounts.c.id == account_id).values(disabled_at=unit.now)
    )
    for agent in unit.rows(
        select(agents.c.id).where(agents.c.account_id == account_id)
    ):
        end_lease(unit, agent.id, LeaseState.REVOKED)
    retract(unit, messages.c.account_id == account_id, ACCOUNT_DISABLED)


def retract(unit: Unit, which: ColumnElement[bool], reason: str) -> None:
    """No longer stand by these messages, where nobody acknowledged them yet.

    Each recipient's streams are told by the next number of its retractions.
    """
    unread = (
        which,
        messages.c.retracted == "",
        messages.c.delivery.in_(("stored", "typed")),
        messages.c.recipient_id.is_not(None),
    )
    recipients = unit.rows(select(messages.c.recipient_id).where(*unread).distinct())
    for recipient in recipients:
        agent_id = recipient.recipient_id
        this_agent = agents.c.id == agent_id
        unit.run(
            update(agents)
            .where(this_agent)
            .values(last_retraction=agents.c.last_retraction + 1)
        )
        number = unit.value(select(agents.c.last_retraction).where(this_agent))
        unit.run(
            update(messages)
            .where(*unread, messages.c.recipient_id == agent_id)
            .values(retracted=reason, retraction=number)
        )
        unit.wake(agent_id)
