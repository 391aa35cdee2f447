"""The directory: who is here, whether connected, and since when.

Promises no message text, no token and no connection to any agent's line; the
person's own view adds which connections may use a name.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from sqlalchemy import Row

from bridge.core.ids import fold_name
from bridge.server.agents import allowed, is_connected, registered, since
from bridge.server.store import Unit


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
