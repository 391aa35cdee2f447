"""Attaching: a name, a lease, and a child connection for one live session.

Owns the decisions of `POST /attachments`. Promises that a name held by a live
session is never taken, that the same session gets the same lease again, that a
move ends the older lease in the same commit, that child tokens are told only
when they were newly made, and that a child the person revoked comes back only
by the person's own attach.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct
from sqlalchemy import Row, insert, select, update

from bridge.core.ids import default_name, fold_name
from bridge.server import agents as names
from bridge.server import auth
from bridge.server.auth import Caller, Reason
from bridge.server.directory import AgentCard, roster
from bridge.server.leases import (
    CURRENT,
    HELD,
    LeaseState,
    end_lease,
    is_held,
    lease,
    set_state,
)
from bridge.server.problems import Problem, invalid_arguments
from bridge.server.registration import create
from bridge.server.schema import agents, attachments, connections
from bridge.server.store import Unit

_PROVIDER = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
_ID_LIMIT = 256


class AttachRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What a bridge asks for.

    `confirm`: a person did this. `child_id`: the child whose tokens the bridge
    holds for this name; any other value, or none, makes a new child.
    """

    provider: str
    session_id: str
    host_id: str
    name: str | None = None
    purpose: str | None = None
    confirm: bool = False
    child_id: str | None = None


class ChildTokens(Struct, frozen=True):
    """A newly made child; its tokens are told this once."""

    connection_id: str
    access_token: str
    refresh_token: str
    expires_in: int

    def __repr__(self) -> str:
        """Never a token."""
        return f"ChildTokens(connection_id={self.connection_id!r})"


class Attached(Struct, frozen=True):
    """The answer: the lease, and what a newly attached session needs."""

    attachment_id: str
    agent_id: str
    name: str
    state: str
    child: ChildTokens | None
    offered_through: int
    roster: list[AgentCard]
    policy: str


def attach(unit: Unit, caller: Caller, request: AttachRequest) -> Attached:
    """Attach one session; see the module for what is promised.

    Raises Problem: 400 for a malformed provider or id, 403 `not_allowed` or
    `confirm_needed`, 409 `name_held`, 422 for names, purposes and limits.
    """
    caller.parent()
    _check(request)
    agent = _agent(unit, caller, request)
    current = lease(unit, agent.attachment_id)
    if current is not None and not _is_same_session(current, request):
        if current.state == LeaseState.ATTACHED and unit.presence.is_live(current.id):
            raise _held_by(agent, current)
        end_lease(unit, agent.id, LeaseState.REPLACED)
        current = None
    _leave_other_name(unit, caller, agent.id, request)
    child_id, child = _child(unit, caller, agent, request)
    attachment_id = _lease(unit, caller, agent.id, current, child_id, request)
    _settle(unit, agent, request, attachment_id)
    return _answer(unit, caller, agent.id, attachment_id, child)


def _check(request: AttachRequest) -> None:
    if not _PROVIDER.fullmatch(request.provider):
        raise invalid_arguments("A provider is a short lower-case word.")
    for text in (request.session_id, request.host_id):
        if not 1 <= len(text) <= _ID_LIMIT or not text.isprintable():
            raise invalid_arguments(
                f"session_id and host_id have 1 to {_ID_LIMIT} printable characters."
            )


def _is_same_session(row: Row[Any], request: AttachRequest) -> bool:
    return (row.provider, row.session_id, row.host_id) == (
        request.provider,
        request.session_id,
        request.host_id,
    )


def _held_by(agent: Row[Any], current: Row[Any]) -> Problem:
    since = names.since(agent)
    return Problem(
        409,
        "name_held",
        f"{agent.name} is held by a live {current.provider} session on"
        f" {current.host_id}" + (f" since {since}." if since else "."),
        "Detach it there first, or choose another name.",
        extras={
            "holder": {
                "name": agent.name,
                "provider": current.provider,
                "session_id": current.session_id,
                "host_id": current.host_id,
                "since": since,
            }
        },
    )


def _agent(unit: Unit, caller: Caller, request: AttachRequest) -> Row[Any]:
    """The agent to attach: by name, as before, or newly registered."""
    if request.name is None:
        earlier = _earlier_agent(unit, caller, request)
        if earlier is not None:
            return earlier
        return create(unit, caller, _default_name(unit, caller, request))
    agent = names.by_name(unit, caller.account_id, request.name)
    if agent is None:
        return create(unit, caller, request.name)
    names.require_allowed(unit, agent, caller.connection_id)
    return agent


def _earlier_agent(
    unit: Unit, caller: Caller, request: AttachRequest
) -> Row[Any] | None:
    """The name this session last had, if this login may still use it."""
    row = unit.row(
        select(agents)
        .where(
            attachments.c.account_id == caller.account_id,
            attachments.c.provider == request.provider,
            attachments.c.session_id == request.session_id,
            attachments.c.host_id == request.host_id,
            attachments.c.agent_id == agents.c.id,
            agents.c.unregistered_at.is_(None),
        )
        .order_by(attachments.c.number.desc())
        .limit(1)
    )
    if row is None or caller.connection_id not in names.allowed(unit, row.id):
        return None
    return row


def _default_name(unit: Unit, caller: Caller, request: AttachRequest) -> str:
    taken = {row.folded for row in names.registered(unit, caller.account_id)}
    return default_name(
        request.provider,
        request.session_id,
        lambda name: fold_name(name) in taken,
    )


def _leave_other_name(
    unit: Unit, caller: Caller, agent_id: str, request: AttachRequest
) -> None:
    """One session holds one name: its lease under another name ends."""
    others = unit.rows(
        select(attachments.c.agent_id).where(
            attachments.c.account_id == caller.account_id,
            attachments.c.provider == request.provider,
            attachments.c.session_id == request.session_id,
            attachments.c.host_id == request.host_id,
            attachments.c.agent_id != agent_id,
            attachments.c.state.in_(CURRENT),
        )
    )
    for other in others:
        end_lease(unit, other.agent_id, LeaseState.REPLACED)


def _child(
    unit: Unit, caller: Caller, agent: Row[Any], request: AttachRequest
) -> tuple[str, ChildTokens | None]:
    """The child to use, and its tokens when it was newly made."""
    latest = unit.row(
        select(connections)
        .where(
            connections.c.parent_id == caller.connection_id,
            connections.c.agent_id == agent.id,
        )
        .order_by(connections.c.number.desc())
        .limit(1)
    )
    if latest is not None:
        if auth.is_usable(unit, latest.id):
            if request.child_id == latest.id:
                return latest.id, None
        elif not request.confirm and _needs_person(latest):
            raise Problem(
                403,
                "confirm_needed",
                f"The connection of {agent.name} was revoked or has expired.",
                "The person attaches the session again.",
            )
    return _new_child(unit, caller, agent, request.provider)


def _needs_person(child: Row[Any]) -> bool:
    """A dead child comes back by itself only after an ordinary detach."""
    return child.revoked_reason not in {
        Reason.DETACHED,
        Reason.SUPERSEDED,
        Reason.LOGOUT,
    }


def _new_child(
    unit: Unit, caller: Caller, agent: Row[Any], provider: str
) -> tuple[str, ChildTokens]:
    siblings = unit.rows(
        select(connections.c.id).where(
            connections.c.parent_id == caller.connection_id,
            connections.c.agent_id == agent.id,
            connections.c.revoked_at.is_(None),
        )
    )
    for sibling in siblings:
        auth.end(unit, sibling.id, Reason.SUPERSEDED)
        names.forbid(unit, agent.id, sibling.id)
    child_id, tokens = auth.open_child(
        unit, caller, agent.id, f"{agent.name} ({provider})"
    )
    names.allow(unit, agent.id, child_id)
    return child_id, ChildTokens(
        child_id, tokens.access_token, tokens.refresh_token, tokens.expires_in
    )


def _lease(
    unit: Unit,
    caller: Caller,
    agent_id: str,
    current: Row[Any] | None,
    child_id: str,
    request: AttachRequest,
) -> str:
    """Refresh the current lease of this session, or make a new one."""
    if current is not None:
        unit.run(
            update(attachments)
            .where(attachments.c.id == current.id)
            .values(child_id=child_id)
        )
        set_state(unit, current.id, LeaseState.ATTACHED)
        return str(current.id)
    attachment_id = unit.new_id("att")
    unit.run(
        insert(attachments).values(
            id=attachment_id,
            account_id=caller.account_id,
            agent_id=agent_id,
            child_id=child_id,
            provider=request.provider,
            session_id=request.session_id,
            host_id=request.host_id,
            state=LeaseState.ATTACHED.value,
            created_at=unit.now,
        )
    )
    return attachment_id


def _settle(
    unit: Unit, agent: Row[Any], request: AttachRequest, attachment_id: str
) -> None:
    """Write what the agent now is, and wake whoever waits for its state."""
    values: dict[str, Any] = {
        "attachment_id": attachment_id,
        "provider": request.provider,
    }
    if not unit.presence.is_connected(attachment_id):
        values["seen_at"] = unit.now
    if request.confirm:
        values["policy"] = unit.settings.policy
    unit.run(update(agents).where(agents.c.id == agent.id).values(**values))
    if request.purpose is not None and request.purpose.strip():
        purpose = names.checked_purpose(unit, request.purpose)
        names.write_purpose(unit, agent.id, purpose)
    unit.presence.see(attachment_id)
    unit.wake(agent.id)


def _answer(
    unit: Unit,
    caller: Caller,
    agent_id: str,
    attachment_id: str,
    child: ChildTokens | None,
) -> Attached:
    agent = names.by_id(unit, agent_id)
    held = is_held(unit, agent)
    return Attached(
        attachment_id=attachment_id,
        agent_id=agent_id,
        name=agent.name,
        state=HELD if held else LeaseState.ATTACHED.value,
        child=child,
        offered_through=agent.offered_through,
        roster=roster(unit, caller.account_id, without=agent_id),
        policy=HELD if held else "current",
    )
