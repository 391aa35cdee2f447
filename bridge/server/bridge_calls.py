"""The calls that bridges make, below /api/external/v1/bridge.

Owns the HTTP form of attaching and of everything a lease may do. Promises that
each call authenticates, checks its lease and does its work in one transaction,
so that a revocation or a move can never slip in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct
from sqlalchemy import Row
from starlette.requests import Request
from starlette.responses import Response

from bridge.server import agents as names
from bridge.server import leases, mailbox, messages, outcomes, receipts
from bridge.server.attachments import Attached, AttachRequest, attach
from bridge.server.auth import Caller, authenticate
from bridge.server.directory import directory
from bridge.server.exchange import (
    answer,
    bearer,
    read_json,
    read_query,
    require_within,
)
from bridge.server.limits import (
    FEATURES,
    LARGEST_CURSOR,
    MIN_CLIENT,
    VERSION,
    advertised,
)
from bridge.server.mailbox import Reading
from bridge.server.parties import agent_side
from bridge.server.problems import wrong_cursor
from bridge.server.rooms import Rooms, waited_page
from bridge.server.store import Unit
from bridge.server.streams import EventStream, Opening

T = TypeVar("T")

_Cursor = Annotated[int, Meta(ge=0, le=LARGEST_CURSOR)]


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """A body or query without keys."""


class StreamQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """The stream's query."""

    messages: Literal["on", "off"] = "on"
    receipts_after: Annotated[int, Meta(ge=0)] = 0


class ReadQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """The explicit read's query."""

    inbox_id: str | None = None
    after: _Cursor = 0
    limit: int = 30
    wait_s: float = 0.0


class ProgressBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How far offers were ever saved for this agent."""

    offered_through: _Cursor


class ReleaseBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Which cached messages are about to be shown."""

    message_ids: list[str]


class ReceiptsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Signs about received messages, in order."""

    receipts: list[receipts.Receipt]


class SendBody(Struct, frozen=True, forbid_unknown_fields=True):
    """One message of an attached agent."""

    message: str
    submission_id: str
    target: str | None = None
    inbox_id: str | None = None


class PurposeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The agent's line in the directory."""

    purpose: str


async def hello(rooms: Rooms, request: Request) -> Response:
    """GET /hello."""
    token = bearer(request)
    read_query(request, Nothing)
    caller = await rooms.store.read(lambda unit: authenticate(unit, token))
    return answer(
        {
            "version": VERSION,
            "min_client": MIN_CLIENT,
            "account": caller.account_id,
            "connection_id": caller.connection_id,
            "limits": advertised(rooms.settings),
            "features": FEATURES,
        }
    )


async def list_agents(rooms: Rooms, request: Request) -> Response:
    """GET /agents."""
    token = bearer(request)
    read_query(request, Nothing)

    def work(unit: Unit) -> dict[str, Any]:
        caller = authenticate(unit, token)
        return {"agents": directory(unit, caller.account_id)}

    return answer(await rooms.store.read(work))


async def attach_session(rooms: Rooms, request: Request) -> Response:
    """POST /attachments."""
    token = bearer(request)
    asked = await read_json(request, rooms.settings, AttachRequest)

    def work(unit: Unit) -> Attached:
        return attach(unit, authenticate(unit, token), asked)

    return answer(await rooms.store.write(work))


async def detach_session(rooms: Rooms, request: Request) -> Response:
    """DELETE /attachments/{id}."""
    token = bearer(request)
    attachment_id = request.path_params["attachment_id"]

    def work(unit: Unit) -> dict[str, bool]:
        leases.detach(unit, authenticate(unit, token), attachment_id)
        return {"detached": True}

    return answer(await rooms.store.write(work))


# ---- calls of a lease: the child, its current attachment, then the work ----

# What is done with the caller and the row of its current lease and agent.
Work = Callable[[Unit, Caller, Row[Any]], T]


def _with_lease(
    request: Request, work: Work[T], *, even_held: bool = False
) -> Callable[[Unit], T]:
    """The work as one transaction that first checks token, lease and hold."""
    token = bearer(request)
    attachment_id = request.path_params["attachment_id"]

    def checked(unit: Unit) -> T:
        caller = authenticate(unit, token)
        agent = leases.own_lease(unit, caller, attachment_id)
        if not even_held:
            leases.require_confirmed(unit, agent)
        return work(unit, caller, agent)

    return checked


async def go_offline(rooms: Rooms, request: Request) -> Response:
    """POST /attachments/{id}/offline."""

    def work(unit: Unit, _: Caller, agent: Row[Any]) -> dict[str, str]:
        leases.go_offline(unit, agent)
        return {"state": "offline"}

    checked = _with_lease(request, work, even_held=True)
    await read_json(request, rooms.settings, Nothing)
    return answer(await rooms.store.write(checked))


async def report_progress(rooms: Rooms, request: Request) -> Response:
    """POST /attachments/{id}/progress."""
    body = await read_json(request, rooms.settings, ProgressBody)

    def work(unit: Unit, _: Caller, agent: Row[Any]) -> dict[str, int]:
        through = names.advance_progress(unit, agent, body.offered_through)
        return {"offered_through": through}

    checked = _with_lease(request, work, even_held=True)
    return answer(await rooms.store.write(checked))


async def read_messages(rooms: Rooms, request: Request) -> Response:
    """GET /attachments/{id}/read."""
    asked = read_query(request, ReadQuery)
    require_within("limit", asked.limit, 1, rooms.settings.read_page)
    require_within("wait_s", asked.wait_s, 0, rooms.settings.read_wait_s)

    def reading(_: Unit, __: Caller, agent: Row[Any]) -> Reading:
        return Reading(
            side=agent_side(agent),
            inbox_id=asked.inbox_id,
            after=asked.after,
            limit=asked.limit,
            is_filtered=True,
        )

    checked = _with_lease(request, reading)
    return answer(await waited_page(rooms, checked, asked.wait_s))


async def release_messages(rooms: Rooms, request: Request) -> Response:
    """POST /attachments/{id}/release."""
    body = await read_json(request, rooms.settings, ReleaseBody)
    count = len(body.message_ids)
    require_within("The number of ids", count, 1, rooms.settings.release_ids)

    def work(unit: Unit, _: Caller, agent: Row[Any]) -> mailbox.Released:
        return mailbox.release(unit, agent.id, body.message_ids)

    return answer(await rooms.store.read(_with_lease(request, work)))


async def record_receipts(rooms: Rooms, request: Request) -> Response:
    """POST /attachments/{id}/receipts."""
    body = await read_json(request, rooms.settings, ReceiptsBody)
    count = len(body.receipts)
    require_within("The number of receipts", count, 1, rooms.settings.receipts_page)

    def work(unit: Unit, _: Caller, agent: Row[Any]) -> receipts.Recording:
        return receipts.record(unit, agent.id, body.receipts)

    checked = _with_lease(request, work, even_held=True)
    return answer(await rooms.store.write(checked))


async def send_message(rooms: Rooms, request: Request) -> Response:
    """POST /attachments/{id}/send."""
    body = await read_json(request, rooms.settings, SendBody)
    outgoing = messages.Outgoing(
        message=body.message,
        target=body.target,
        inbox_id=body.inbox_id,
        submission_id=body.submission_id,
        is_reply_only=True,
    )

    def work(unit: Unit, caller: Caller, agent: Row[Any]) -> messages.Sent:
        side = agent_side(agent)
        return messages.send(unit, side, caller.connection_id, outgoing)

    return answer(await rooms.store.write(_with_lease(request, work)))


async def sent_status(rooms: Rooms, request: Request) -> Response:
    """GET /attachments/{id}/sent/{message or submission id}."""
    read_query(request, Nothing)
    sent_id = request.path_params["sent_id"]

    def work(unit: Unit, _: Caller, agent: Row[Any]) -> outcomes.SentStatus:
        return outcomes.sent_status(unit, agent_side(agent), sent_id)

    checked = _with_lease(request, work, even_held=True)
    return answer(await rooms.store.read(checked))


async def set_purpose(rooms: Rooms, request: Request) -> Response:
    """PUT /attachments/{id}/purpose."""
    body = await read_json(request, rooms.settings, PurposeBody)

    def work(unit: Unit, _: Caller, agent: Row[Any]) -> dict[str, str]:
        return {"purpose": names.set_purpose(unit, agent, body.purpose)}

    checked = _with_lease(request, work, even_held=True)
    return answer(await rooms.store.write(checked))


async def open_stream(rooms: Rooms, request: Request) -> EventStream:
    """GET /attachments/{id}/stream."""
    token = bearer(request)
    asked = read_query(request, StreamQuery)
    opening = Opening(
        attachment_id=request.path_params["attachment_id"],
        cursor=_cursor(request.headers.get("last-event-id")),
        receipts_after=asked.receipts_after,
        has_messages=asked.messages == "on",
    )
    return await rooms.streams.open(token, opening)


def _cursor(text: str | None) -> int | None:
    """The Last-Event-ID header; None when it is absent or empty."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise wrong_cursor("mailbox")
    return int(text)
