"""Names: finding an agent, who may use its name, its purpose and progress.

Owns the agents' rows. Promises that a name means one agent id for as long as it
is registered, and that every use of a name by a person's login checks the
name's list.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, bindparam, delete, insert, select, update

from bridge.clock import rfc3339
from bridge.core.ids import fold_name
from bridge.server.auth import Caller, alive
from bridge.server.limits import MAILBOX_START
from bridge.server.problems import Problem, not_found
from bridge.server.schema import agents, connections, permissions
from bridge.server.store import Unit

ADDRESS_PREFIX = "agent:"


_BY_NAME = select(agents).where(
    agents.c.account_id == bindparam("account_id"),
    agents.c.folded == bindparam("folded"),
    agents.c.unregistered_at.is_(None),
)

_BY_ID = select(agents).where(agents.c.id == bindparam("agent_id"))


def by_name(unit: Unit, account_id: str, name: str) -> Row[Any] | None:
    """The registered agent of this name in this account, or None."""
    return unit.row(_BY_NAME, account_id=account_id, folded=fold_name(name))


def by_id(unit: Unit, agent_id: str) -> Row[Any]:
    """An agent that is known to exist, registered or not."""
    row = unit.row(_BY_ID, agent_id=agent_id)
    if row is None:
        raise not_found()
    return row


def registered(unit: Unit, account_id: str) -> Sequence[Row[Any]]:
    """All names of an account, by name (at most the account's limit)."""
    return unit.rows(
        select(agents)
        .where(agents.c.account_id == account_id, agents.c.unregistered_at.is_(None))
        .order_by(agents.c.folded)
    )


def addressed(unit: Unit, account_id: str, target: str) -> Row[Any]:
    """The agent of an address (`agent:bob` or `bob`); 404 with nearest names."""
    name = target.strip()
    if name.lower().startswith(ADDRESS_PREFIX):
        name = name[len(ADDRESS_PREFIX) :]
    row = by_name(unit, account_id, name)
    if row is None:
        raise not_found(
            "No agent of this account can be reached by that address.",
            nearest(unit, account_id, name),
        )
    return row


def nearest(unit: Unit, account_id: str, name: str) -> list[str]:
    """The account's names that look most like this one, best first."""
    shown = {row.folded: row.name for row in registered(unit, account_id)}
    close = difflib.get_close_matches(
        fold_name(name)[:128], list(shown), n=unit.settings.nearest_names, cutoff=0.5
    )
    return [shown[folded] for folded in close]


def allowed(unit: Unit, agent_id: str) -> list[str]:
    """The connections that may use this name and are still alive, sorted."""
    found = unit.rows(
        select(permissions.c.connection_id)
        .where(
            permissions.c.agent_id == agent_id,
            permissions.c.connection_id == connections.c.id,
            alive(unit.now),
        )
        .order_by(permissions.c.connection_id)
    )
    return [str(row.connection_id) for row in found]


def require_allowed(unit: Unit, agent: Row[Any], connection_id: str) -> None:
    """403, with what to do, when the name's list does not hold this connection."""
    if connection_id not in allowed(unit, agent.id):
        raise Problem(
            403,
            "not_allowed",
            f"This login may not use the name {agent.name}.",
            "From a login that may: agentworks messages register"
            f" --agent {agent.name} --allow-connection {connection_id}",
        )


def named(unit: Unit, caller: Caller, name: str) -> Row[Any]:
    """The agent a person's login wants to act as; 404, or 403 by its list."""
    row = by_name(unit, caller.account_id, name)
    if row is None:
        raise not_found(
            "No agent of this account has that name.",
            nearest(unit, caller.account_id, name),
        )
    require_allowed(unit, row, caller.connection_id)
    return row


def allow(unit: Unit, agent_id: str, connection_id: str) -> None:
    """Put a connection on the name's list (twice is the same as once)."""
    forbid(unit, agent_id, connection_id)
    unit.run(insert(permissions).values(agent_id=agent_id, connection_id=connection_id))


def forbid(unit: Unit, agent_id: str, connection_id: str) -> None:
    """Take a connection off the name's list."""
    unit.run(
        delete(permissions).where(
            permissions.c.agent_id == agent_id,
            permissions.c.connection_id == connection_id,
        )
    )


def checked_purpose(unit: Unit, text: str) -> str:
    """A trimmed one-line purpose of 1 to 512 characters; 422 otherwise."""
    purpose = text.strip()
    limit = unit.settings.purpose_characters
    if not 1 <= len(purpose) <= limit or not purpose.isprintable():
        raise Problem(
            422,
            "invalid_purpose",
            f"A purpose is one line of 1 to {limit} printable characters.",
        )
    return purpose


def set_purpose(unit: Unit, agent: Row[Any], text: str) -> str:
    """Change the purpose; 429 for another change inside a minute."""
    purpose = checked_purpose(unit, text)
    if purpose == agent.purpose:
        return purpose
    pause = unit.settings.purpose_pause_s
    if agent.purpose_at is not None and unit.now - agent.purpose_at < pause:
        raise Problem(
            429,
            "purpose_rate",
            "The purpose was changed less than a minute ago.",
            "Set it again later.",
            # A wall clock that was set back must not ask for more than the pause.
            retry_after_s=min(pause, agent.purpose_at + pause - unit.now),
        )
    write_purpose(unit, agent.id, purpose)
    return purpose


def write_purpose(unit: Unit, agent_id: str, purpose: str) -> None:
    """Store a checked purpose."""
    unit.run(
        update(agents)
        .where(agents.c.id == agent_id)
        .values(purpose=purpose, purpose_at=unit.now)
    )


def advance_progress(unit: Unit, agent: Row[Any], through: int) -> int:
    """Raise `offered_through` (never lowers); 422 past the last sequence."""
    if through != 0 and not MAILBOX_START <= through <= agent.last_sequence:
        raise Problem(
            422,
            "invalid_progress",
            "No message of this mailbox has that sequence yet.",
        )
    highest = max(int(agent.offered_through), through)
    unit.run(
        update(agents).where(agents.c.id == agent.id).values(offered_through=highest)
    )
    return highest


def is_connected(unit: Unit, agent: Row[Any]) -> bool:
    """True while a stream of its current lease is open."""
    return unit.presence.is_connected(agent.attachment_id)


def since(agent: Row[Any]) -> str | None:
    """When it became connected, or was last connected; None for never."""
    return None if agent.seen_at is None else rfc3339(agent.seen_at)
