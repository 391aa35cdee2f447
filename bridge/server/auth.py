"""Accounts, connections and tokens: who is calling, and with what right.

Owns the tokens' life. Promises that only SHA-256 hashes are stored; that an
access token ends with its time, its connection, its connection's parent and its
account; that a refresh token works once, and that using it again revokes the
whole family. Nothing here knows of agents' mail; ending a connection's leases
and retracting its messages is `revocation`.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

from msgspec import Struct
from sqlalchemy import (
    BindParameter,
    and_,
    bindparam,
    delete,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.sql.elements import ColumnElement

from bridge.server.problems import insufficient_scope, invalid_token
from bridge.server.schema import (
    access_tokens,
    accounts,
    connections,
    refresh_tokens,
)
from bridge.server.store import Unit

LOCAL_ACCOUNT = "local"
LOCAL_CONNECTION = "oauth-local"
PARENT_SCOPES = "messages runs:execute"
CHILD_SCOPES = "messages:own"
ACCESS_PREFIX = "aw_cli_"
REFRESH_PREFIX = "aw_cli_refresh_"
_TOKEN_BYTES = 32


class Reason(StrEnum):
    """Why a connection ended; only the person's word unsays its messages."""

    PERSON = "person"
    LOGOUT = "logout"
    DETACHED = "detached"
    SUPERSEDED = "superseded"
    UNREGISTERED = "unregistered"
    REUSE = "reuse"


class Caller(Struct, frozen=True):
    """An authenticated connection. `agent_id` is set for a child only."""

    connection_id: str
    account_id: str
    agent_id: str | None

    def parent(self) -> Caller:
        """This caller, if it is a person's login; else 403."""
        if self.agent_id is not None:
            raise insufficient_scope(
                "An attached agent's connection does messaging for that agent only."
            )
        return self

    def child(self) -> str:
        """The agent this connection is bound to; 403 for a person's login."""
        if self.agent_id is None:
            raise insufficient_scope(
                "Only the connection that attaching made can do this for its agent."
            )
        return self.agent_id


class Tokens(Struct, frozen=True):
    """A fresh pair, told once and never again."""

    access_token: str
    refresh_token: str
    expires_in: int
    scopes: str

    def __repr__(self) -> str:
        """Never a token."""
        return f"Tokens(expires_in={self.expires_in})"


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


Moment = float | BindParameter[float]


def alive(now: Moment) -> ColumnElement[bool]:
    """SQL: this connection is neither revoked nor expired."""
    return and_(
        connections.c.revoked_at.is_(None),
        or_(connections.c.expires_at.is_(None), connections.c.expires_at > now),
    )


def usable(now: Moment) -> ColumnElement[bool]:
    """SQL: alive, and so are its account and, for a child, its parent."""
    parent = connections.alias("parent")
    parent_alive = (
        select(parent.c.id)
        .where(
            parent.c.id == connections.c.parent_id,
            parent.c.revoked_at.is_(None),
            or_(parent.c.expires_at.is_(None), parent.c.expires_at > now),
        )
        .exists()
    )
    enabled = (
        select(accounts.c.id)
        .where(
            accounts.c.id == connections.c.account_id,
            accounts.c.disabled_at.is_(None),
        )
        .exists()
    )
    return and_(
        alive(now), enabled, or_(connections.c.parent_id.is_(None), parent_alive)
    )


_NOW: BindParameter[float] = bindparam("now")

_BY_ACCESS_TOKEN = select(
    connections.c.id, connections.c.account_id, connections.c.agent_id
).where(
    access_tokens.c.hash == bindparam("hash"),
    access_tokens.c.connection_id == connections.c.id,
    or_(access_tokens.c.expires_at.is_(None), access_tokens.c.expires_at > _NOW),
    usable(_NOW),
)

_USABLE = select(connections.c.id).where(
    connections.c.id == bindparam("connection_id"), usable(_NOW)
)


def authenticate(unit: Unit, token: str) -> Caller:
    """The connection of an access token; 401 for anything else."""
    row = unit.row(_BY_ACCESS_TOKEN, hash=digest(token), now=unit.now)
    if row is None:
        raise invalid_token()
    return Caller(row.id, row.account_id, row.agent_id)


def is_usable(unit: Unit, connection_id: str) -> bool:
    """True while this connection could get or use a token."""
    found = unit.row(_USABLE, connection_id=connection_id, now=unit.now)
    return found is not None


def issue(unit: Unit, connection_id: str, scopes: str) -> Tokens:
    """A new pair for a connection; its life is extended by the refresh time."""
    access = ACCESS_PREFIX + unit.random_hex(_TOKEN_BYTES)
    refreshing = REFRESH_PREFIX + unit.random_hex(_TOKEN_BYTES)
    until = unit.now + unit.settings.refresh_token_s
    unit.run(
        delete(access_tokens).where(
            access_tokens.c.connection_id == connection_id,
            access_tokens.c.expires_at <= unit.now,
        )
    )
    unit.run(
        insert(access_tokens).values(
            hash=digest(access),
            connection_id=connection_id,
            expires_at=unit.now + unit.settings.access_token_s,
        )
    )
    unit.run(
        insert(refresh_tokens).values(
            hash=digest(refreshing), connection_id=connection_id, expires_at=until
        )
    )
    unit.run(
        update(connections)
        .where(connections.c.id == connection_id)
        .values(expires_at=until)
    )
    return Tokens(access, refreshing, unit.settings.access_token_s, scopes)


def refresh(unit: Unit, refresh_token: str) -> Tokens | None:
    """Exchange a refresh token for a new pair; None when it is not good.

    Returns instead of raising, because using one twice revokes its family and
    that must be committed.
    """
    row = unit.row(
        select(
            refresh_tokens.c.used_at,
            refresh_tokens.c.expires_at,
            connections.c.id,
            connections.c.scopes,
        ).where(
            refresh_tokens.c.hash == digest(refresh_token),
            refresh_tokens.c.connection_id == connections.c.id,
            usable(unit.now),
        )
    )
    if row is None:
        return None
    if row.used_at is not None:
        end(unit, row.id, Reason.REUSE)
        return None
    if row.expires_at <= unit.now:
        return None
    unit.run(
        update(refresh_tokens)
        .where(refresh_tokens.c.hash == digest(refresh_token))
        .values(used_at=unit.now)
    )
    return issue(unit, row.id, row.scopes)


def end(unit: Unit, connection_id: str, reason: Reason) -> None:
    """Revoke one connection: authentication and refresh stop at once.

    The first reason stays, except that the person's word replaces any other.
    """
    unit.run(
        update(connections)
        .where(
            connections.c.id == connection_id,
            or_(connections.c.revoked_at.is_(None), literal(reason == Reason.PERSON)),
        )
        .values(revoked_at=unit.now, revoked_reason=reason.value)
    )
    unit.run(
        delete(access_tokens).where(access_tokens.c.connection_id == connection_id)
    )


def family_of(unit: Unit, token: str) -> str | None:
    """The connection of a refresh or access token, whatever its state."""
    hashed = digest(token)
    found = unit.value(
        select(refresh_tokens.c.connection_id).where(refresh_tokens.c.hash == hashed)
    ) or unit.value(
        select(access_tokens.c.connection_id).where(access_tokens.c.hash == hashed)
    )
    return None if found is None else str(found)


def open_account(unit: Unit, account_id: str) -> None:
    """Make the account if it is new."""
    if unit.row(select(accounts.c.id).where(accounts.c.id == account_id)) is None:
        unit.run(insert(accounts).values(id=account_id))


def open_parent(
    unit: Unit, account_id: str, connection_id: str, client_name: str
) -> str:
    """A person's connection and its one access token, which does not expire.

    Calling it again gives a new token and ends the old one.
    """
    open_account(unit, account_id)
    known = connections.c.id == connection_id
    if unit.row(select(connections.c.id).where(known)) is None:
        unit.run(
            insert(connections).values(
                id=connection_id,
                account_id=account_id,
                client_name=client_name,
                scopes=PARENT_SCOPES,
                created_at=unit.now,
            )
        )
    unit.run(
        update(connections).where(known).values(revoked_at=None, revoked_reason="")
    )
    unit.run(
        delete(access_tokens).where(access_tokens.c.connection_id == connection_id)
    )
    token = ACCESS_PREFIX + unit.random_hex(_TOKEN_BYTES)
    unit.run(
        insert(access_tokens).values(hash=digest(token), connection_id=connection_id)
    )
    return token


def open_child(
    unit: Unit, parent: Caller, agent_id: str, client_name: str
) -> tuple[str, Tokens]:
    """A new child of this parent for one agent, with its first tokens."""
    connection_id = unit.new_id("oauth")
    unit.run(
        insert(connections).values(
            id=connection_id,
            account_id=parent.account_id,
            parent_id=parent.connection_id,
            agent_id=agent_id,
            client_name=client_name,
            scopes=CHILD_SCOPES,
            created_at=unit.now,
        )
    )
    return connection_id, issue(unit, connection_id, CHILD_SCOPES)
