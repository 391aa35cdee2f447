"""Registering names, and setting which connections may use them.

Promises that a free name gets a new identity, that the limits of account and
server hold, and that only live connections of the same account are allowed.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from sqlalchemy import Row, delete, func, insert, or_, select

from bridge.core.ids import fold_name, is_name
from bridge.server.agents import allow, allowed, by_id, by_name, require_allowed
from bridge.server.auth import Caller, alive
from bridge.server.limits import MAILBOX_START
from bridge.server.problems import Problem
from bridge.server.schema import agents, connections, permissions
from bridge.server.store import Unit


class Registration(Struct, frozen=True):
    """The answer to a registration."""

    agent_id: str
    agent_name: str
    created: bool
    allowed_connection_ids: list[str]


def create(unit: Unit, caller: Caller, name: str) -> Row[Any]:
    """Register a free name; its creating connection is allowed."""
    if not is_name(name):
        raise Problem(
            422,
            "invalid_name",
            "A name is 1 to 64 ASCII letters, digits, dots, underscores or"
            " hyphens, and starts with a letter or digit.",
        )
    _require_room(unit, caller.account_id)
    agent_id = unit.new_id("agent")
    unit.run(
        insert(agents).values(
            id=agent_id,
            account_id=caller.account_id,
            name=name,
            folded=fold_name(name),
            policy=unit.settings.policy,
            created_at=unit.now,
            last_sequence=MAILBOX_START,
        )
    )
    allow(unit, agent_id, caller.connection_id)
    return by_id(unit, agent_id)


def _require_room(unit: Unit, account_id: str) -> None:
    live = (
        select(func.count())
        .select_from(agents)
        .where(agents.c.unregistered_at.is_(None))
    )
    full = (
        unit.value(live.where(agents.c.account_id == account_id))
        >= unit.settings.names_per_account
        or unit.value(live) >= unit.settings.names
    )
    if full:
        raise Problem(
            422,
            "too_many_names",
            "No more names can be registered here.",
            "Unregister one that is no longer used.",
        )


def register(
    unit: Unit, caller: Caller, name: str, also: list[str] | None
) -> Registration:
    """Register or confirm a name. `also`: the list's other connections, or None
    to leave the list as it is.
    """
    agent = by_name(unit, caller.account_id, name)
    created = agent is None
    if agent is None:
        agent = create(unit, caller, name)
    else:
        require_allowed(unit, agent, caller.connection_id)
    if also is not None:
        _replace_list(unit, caller, agent.id, also)
    return Registration(agent.id, agent.name, created, allowed(unit, agent.id))


def _replace_list(unit: Unit, caller: Caller, agent_id: str, also: list[str]) -> None:
    for connection_id in also:
        known = unit.row(
            select(connections.c.id).where(
                connections.c.id == connection_id,
                connections.c.account_id == caller.account_id,
                # A child is bound to its own agent; it cannot lend itself.
                or_(
                    connections.c.agent_id.is_(None),
                    connections.c.agent_id == agent_id,
                ),
                alive(unit.now),
            )
        )
        if known is None:
            raise Problem(
                422,
                "unknown_connection",
                "A connection on that list is not a live one of this account.",
                "See GET /api/oauth/mcp/connections for their ids.",
            )
    # The agent's own child stays: its person allowed it by attaching.
    own = select(connections.c.id).where(connections.c.agent_id == agent_id)
    unit.run(
        delete(permissions).where(
            permissions.c.agent_id == agent_id,
            permissions.c.connection_id.not_in(own),
        )
    )
    for connection_id in {caller.connection_id, *also}:
        allow(unit, agent_id, connection_id)
