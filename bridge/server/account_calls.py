"""The calls of a login: refreshing, revoking, and seeing its connections.

Owns the HTTP form of `auth` and of revocation. Promises OAuth's flat errors on
the token endpoint, and that revoking a token tells nobody whether it existed.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from sqlalchemy import Row, select
from starlette.requests import Request
from starlette.responses import Response

from bridge.clock import rfc3339
from bridge.server import auth, leases
from bridge.server.auth import Caller, Reason, alive, authenticate
from bridge.server.exchange import answer, bearer, oauth_error, read_form
from bridge.server.problems import not_found
from bridge.server.rooms import Rooms
from bridge.server.schema import agents, connections
from bridge.server.store import Unit


class ConnectionEntry(Struct, frozen=True):
    """One live connection, as its person sees it; public, not a secret."""

    id: str
    client_name: str
    scopes: list[str]
    expires_at: str | None
    kind: str
    parent_id: str | None
    agent_name: str | None
    current: bool


async def exchange_token(rooms: Rooms, request: Request) -> Response:
    """POST /api/oauth/cli/token: the refresh grant."""
    form = await read_form(request, rooms.settings)
    if form.get("grant_type") != "refresh_token":
        return oauth_error("unsupported_grant_type")
    token = form.get("refresh_token", "")
    if not token:
        return oauth_error("invalid_request")
    pair = await rooms.store.write(lambda unit: auth.refresh(unit, token))
    if pair is None:
        return oauth_error("invalid_grant")
    return answer(
        {
            "access_token": pair.access_token,
            "token_type": "Bearer",
            "expires_in": pair.expires_in,
            "refresh_token": pair.refresh_token,
            "scope": pair.scopes,
        }
    )


async def revoke_token(rooms: Rooms, request: Request) -> Response:
    """POST /api/oauth/cli/revoke: signing out; always 200."""
    form = await read_form(request, rooms.settings)

    def work(unit: Unit) -> None:
        family = auth.family_of(unit, form.get("token", ""))
        if family is not None:
            leases.revoke(unit, family, Reason.LOGOUT)

    await rooms.store.write(work)
    return answer({})


async def list_connections(rooms: Rooms, request: Request) -> Response:
    """GET /api/oauth/mcp/connections."""
    token = bearer(request)

    def work(unit: Unit) -> dict[str, list[ConnectionEntry]]:
        caller = authenticate(unit, token).parent()
        return {"connections": _entries(unit, caller)}

    return answer(await rooms.store.read(work))


def _entries(unit: Unit, caller: Caller) -> list[ConnectionEntry]:
    rows = unit.rows(
        select(connections, agents.c.name.label("agent_name"))
        .outerjoin(agents, agents.c.id == connections.c.agent_id)
        .where(connections.c.account_id == caller.account_id, alive(unit.now))
        .order_by(connections.c.number)
    )
    return [_entry(row, caller) for row in rows]


def _entry(row: Row[Any], caller: Caller) -> ConnectionEntry:
    return ConnectionEntry(
        id=row.id,
        client_name=row.client_name,
        scopes=row.scopes.split(),
        expires_at=None if row.expires_at is None else rfc3339(row.expires_at),
        kind="parent" if row.parent_id is None else "child",
        parent_id=row.parent_id,
        agent_name=row.agent_name,
        current=row.id == caller.connection_id,
    )


async def revoke_connection(rooms: Rooms, request: Request) -> Response:
    """DELETE /api/oauth/mcp/connections/{id}: the person's own word."""
    token = bearer(request)
    connection_id = request.path_params["connection_id"]

    def work(unit: Unit) -> dict[str, bool]:
        caller = authenticate(unit, token).parent()
        known = unit.row(
            select(connections.c.id).where(
                connections.c.id == connection_id,
                connections.c.account_id == caller.account_id,
            )
        )
        if known is None:
            raise not_found("There is no connection of that id.")
        leases.revoke(unit, connection_id, Reason.PERSON)
        return {"revoked": True}

    return answer(await rooms.store.write(work))
