"""Names: registration, who may use one, the directory, purposes.

Owns the agents' rows. Promises that a name means one agent id for as long as it
is registered and a new one afterwards, that every use of a name by a person's
login checks the name's list, and that the directory holds no message text.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Row, bindparam, delete, func, insert, or_, select, update

from bridge.clock import rfc3339
from bridge.core.ids import fold_name, is_name
from bridge.server.auth import Caller, alive
from bridge.server.limits import MAILBOX_START
from bridge.server.problems import Problem, not_found
from bridge.server.schema import agents, connections, permissions
from bridge.server.store import Unit

ADDRESS_PREFIX = "agent:"


class AgentCard(Struct, frozen=True):
    """One line of the directory. `since`: connected since, or last connected."""

    name: str
    provider: str
    purpose: str
    connected: bool
    since: str | None


class AgentEntry(AgentCard, frozen=True):
    """A line of the whole directory."""

    agent_id: str


class RegisteredEntry(AgentEntry, frozen=True):
    """A line as the person's login sees it."""

    allowed_connection_ids: list[str]


class Registration(Struct, frozen=True):
    """The answer to a registration."""

    agent_id: str
    agent_name: str
    created: bool
    allowed_connection_ids: list[str]


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
        raise not_found("No agent of this account has that name.")
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


def _card(unit: Unit, agent: Row[Any]) -> dict[str, Any]:
    return {
        "name": agent.name,
        "provider": agent.provider,
        "purpose": agent.purpose,
        "connected": is_connected(unit, agent),
        "since": since(agent),
    }


def roster(unit: Unit, account_id: str, without: str) -> list[AgentCard]:
    """The others, online first, then by name, at most the roster's length."""
    cards = [
        AgentCard(**_card(unit, agent))
        for agent in registered(unit, account_id)
        if agent.id != without
    ]
    cards.sort(key=lambda card: (not card.connected, fold_name(card.name)))
    return cards[: unit.settings.roster]


def directory(unit: Unit, account_id: str) -> list[AgentEntry]:
    """All names of the account, online first, then by name."""
    entries = [
        AgentEntry(**_card(unit, agent), agent_id=agent.id)
        for agent in registered(unit, account_id)
    ]
    entries.sort(key=lambda entry: (not entry.connected, fold_name(entry.name)))
    return entries


def registrations(unit: Unit, account_id: str) -> list[RegisteredEntry]:
    """All names with their lists, by name."""
    return [
        RegisteredEntry(
            **_card(unit, agent),
            agent_id=agent.id,
            allowed_connection_ids=allowed(unit, agent.id),
        )
        for agent in registered(unit, account_id)
    ]
