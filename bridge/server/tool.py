"""The public `messages` tool: its description, its arguments, its actions.

Owns `GET /tools` and what `POST /call` does. Promises that the schema shown and
the arguments taken are the same definition, and that only a person's login
reaches it: an attached agent has its own calls.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from bridge.core.ids import SUBMISSION_ID_LIMIT
from bridge.server import agents as names
from bridge.server import leases, mailbox, messages, outcomes
from bridge.server.auth import authenticate
from bridge.server.directory import registrations
from bridge.server.exchange import answer, bearer, read_json, require_within
from bridge.server.limits import LARGEST_CURSOR
from bridge.server.parties import acting_side
from bridge.server.problems import Problem, invalid_arguments
from bridge.server.registration import register
from bridge.server.rooms import Rooms, waited_page
from bridge.server.store import Unit

TOOL = "messages"

_Text = Annotated[str, Meta(min_length=1)]
_Cursor = Annotated[int, Meta(ge=0, le=LARGEST_CURSOR)]
_Limit = Annotated[int, Meta(ge=1, le=100)]
_Wait = Annotated[int, Meta(ge=0, le=25)]
_SubmissionId = Annotated[str, Meta(min_length=1, max_length=SUBMISSION_ID_LIMIT)]
_Ids = Annotated[list[str], Meta(max_length=100)]


class Register(Struct, tag_field="action", tag="register", forbid_unknown_fields=True):
    """Register a name, or set which connections may use it."""

    agent_name: _Text
    allowed_connection_ids: _Ids | UnsetType = UNSET


class ListAgents(
    Struct, tag_field="action", tag="list_agents", forbid_unknown_fields=True
):
    """List the account's names."""


class SendMessage(Struct, tag_field="action", tag="send", forbid_unknown_fields=True):
    """Send to a name, or into an inbox; as one of your names if you say which."""

    message: _Text
    target: _Text | None = None
    inbox_id: _Text | None = None
    agent_name: _Text | None = None
    submission_id: _SubmissionId | None = None


class ReadMessages(Struct, tag_field="action", tag="read", forbid_unknown_fields=True):
    """Read a name's mailbox, or one inbox; never changes anything."""

    agent_name: _Text | None = None
    inbox_id: _Text | None = None
    after: _Cursor = 0
    limit: _Limit = 30
    wait_seconds: _Wait = 0


class State(Struct, tag_field="action", tag="state", forbid_unknown_fields=True):
    """Show the last deliveries of an inbox, without their text."""

    inbox_id: _Text


class Unregister(
    Struct, tag_field="action", tag="unregister", forbid_unknown_fields=True
):
    """Give up a name; messages nobody acknowledged are taken back."""

    agent_name: _Text


Action = Register | ListAgents | SendMessage | ReadMessages | State | Unregister


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of /call."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


def catalog() -> dict[str, Any]:
    """What GET /tools answers."""
    return {
        "tools": [
            {
                "name": TOOL,
                "description": (
                    "Durable messages between the named agents of this account."
                    " A stored message is not yet a read one; reading is explicit"
                    " and changes nothing."
                ),
                "inputSchema": _schema(),
            }
        ]
    }


def _schema() -> dict[str, Any]:
    """One flat object: hosts demand `type: object` at the top."""
    kinds = (Register, ListAgents, SendMessage, ReadMessages, State, Unregister)
    properties: dict[str, Any] = {}
    for kind in kinds:
        shown = msgspec.json.schema(kind)["$defs"][kind.__name__]
        properties.update(shown["properties"])
    properties["action"] = {
        "type": "string",
        "enum": [msgspec.inspect.type_info(kind).tag for kind in kinds],  # type: ignore[attr-defined]
    }
    return {
        "type": "object",
        "properties": properties,
        "required": ["action"],
        "additionalProperties": False,
    }


async def tools(rooms: Rooms, request: Request) -> Response:
    """GET /tools."""
    token = bearer(request)
    await rooms.store.read(lambda unit: authenticate(unit, token).parent())
    return answer(catalog())


async def call(rooms: Rooms, request: Request) -> Response:
    """POST /call."""
    token = bearer(request)
    asked = await read_json(request, rooms.settings, Call)
    if asked.name != TOOL:
        raise Problem(404, "unknown_tool", "There is no tool of that name.")
    try:
        action = msgspec.json.decode(asked.arguments, type=Action)
    except msgspec.ValidationError as error:
        raise invalid_arguments(f"{error}.") from error
    return answer(await _perform(rooms, token, action))


async def _perform(rooms: Rooms, token: str, action: Action) -> object:
    if isinstance(action, ReadMessages):
        return await _read(rooms, token, action)
    if isinstance(action, ListAgents | State):
        return await rooms.store.read(lambda unit: _view(unit, token, action))
    return await rooms.store.write(lambda unit: _change(unit, token, action))


def _view(unit: Unit, token: str, action: ListAgents | State) -> object:
    caller = authenticate(unit, token).parent()
    if isinstance(action, State):
        return outcomes.inbox_state(unit, caller.account_id, action.inbox_id)
    return {"agents": registrations(unit, caller.account_id)}


def _change(
    unit: Unit, token: str, action: Register | SendMessage | Unregister
) -> object:
    caller = authenticate(unit, token).parent()
    if isinstance(action, Register):
        given = action.allowed_connection_ids
        also = None if isinstance(given, UnsetType) else given
        return register(unit, caller, action.agent_name, also)
    if isinstance(action, Unregister):
        agent = names.named(unit, caller, action.agent_name)
        leases.unregister(unit, agent)
        return {"unregistered": True, "agent_name": agent.name}
    outgoing = messages.Outgoing(
        message=action.message,
        target=action.target,
        inbox_id=action.inbox_id,
        submission_id=action.submission_id,
    )
    side = acting_side(unit, caller, action.agent_name)
    return messages.send(unit, side, caller.connection_id, outgoing)


async def _read(rooms: Rooms, token: str, action: ReadMessages) -> mailbox.Page:
    if action.agent_name is None and action.inbox_id is None:
        raise invalid_arguments("A read needs agent_name or inbox_id.")
    require_within("limit", action.limit, 1, rooms.settings.read_page)

    def reading(unit: Unit) -> mailbox.Reading:
        caller = authenticate(unit, token).parent()
        return mailbox.Reading(
            side=acting_side(unit, caller, action.agent_name),
            inbox_id=action.inbox_id,
            after=action.after,
            limit=action.limit,
            is_filtered=False,
        )

    return await waited_page(rooms, reading, action.wait_seconds)
