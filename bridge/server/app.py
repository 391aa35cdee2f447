"""The ASGI application: which call is where, and how errors leave.

Owns the route table. Promises that every answer that is not a result is the
error envelope, and that a bug in one call is logged without its request's
content and answered 500, while the others go on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bridge.server import account_calls, bridge_calls, tool
from bridge.server.exchange import as_problem, refuse
from bridge.server.faults import named
from bridge.server.problems import Problem
from bridge.server.rooms import Rooms

_PUBLIC = "/api/external/v1"
_BRIDGE = _PUBLIC + "/bridge"
_LEASE = _BRIDGE + "/attachments/{attachment_id}"

# A response is any ASGI application; a stream is one.
Call = Callable[[Rooms, Request], Awaitable[ASGIApp]]

_ROUTES: tuple[tuple[str, str, Call], ...] = (
    ("POST", "/api/oauth/cli/token", account_calls.exchange_token),
    ("POST", "/api/oauth/cli/revoke", account_calls.revoke_token),
    ("GET", "/api/oauth/mcp/connections", account_calls.list_connections),
    (
        "DELETE",
        "/api/oauth/mcp/connections/{connection_id}",
        account_calls.revoke_connection,
    ),
    ("GET", _PUBLIC + "/tools", tool.tools),
    ("POST", _PUBLIC + "/call", tool.call),
    ("GET", _BRIDGE + "/hello", bridge_calls.hello),
    ("GET", _BRIDGE + "/agents", bridge_calls.list_agents),
    ("POST", _BRIDGE + "/attachments", bridge_calls.attach_session),
    ("DELETE", _LEASE, bridge_calls.detach_session),
    ("POST", _LEASE + "/offline", bridge_calls.go_offline),
    ("GET", _LEASE + "/stream", bridge_calls.open_stream),
    ("POST", _LEASE + "/progress", bridge_calls.report_progress),
    ("GET", _LEASE + "/read", bridge_calls.read_messages),
    ("POST", _LEASE + "/release", bridge_calls.release_messages),
    ("POST", _LEASE + "/receipts", bridge_calls.record_receipts),
    ("POST", _LEASE + "/send", bridge_calls.send_message),
    # A submission id may hold a slash.
    ("GET", _LEASE + "/sent/{sent_id:path}", bridge_calls.sent_status),
    ("PUT", _LEASE + "/purpose", bridge_calls.set_purpose),
)


def build(rooms: Rooms) -> Starlette:
    """The application of one running server."""
    routes = [_route(rooms, *listed) for listed in _ROUTES]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_route})
    app.router.redirect_slashes = False
    return app


def _route(rooms: Rooms, method: str, path: str, call: Call) -> Route:
    route = Route(path, _guarded(rooms, call), methods=[method])
    # Starlette adds HEAD to each GET; on a stream it would wait for ever.
    route.methods = {method}
    return route


def _guarded(rooms: Rooms, call: Call) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> ASGIApp:
        try:
            return await call(rooms, request)
        except Exception as error:
            problem = as_problem(error)
            if problem is not None:
                return refuse(problem)
            rooms.log.error("call_failed", call=call.__name__, error=named(error))
            return refuse(Problem(500, "internal", "The server failed at this call."))

    return endpoint  # type: ignore[return-value]


async def _no_route(_: Request, error: Exception) -> Response:
    """What Starlette itself refuses: no such path, or another method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        return refuse(
            Problem(405, "method_not_allowed", "This call does not take that method.")
        )
    return refuse(Problem(status, "no_route", "There is no call at this address."))
