"""What the person asks from a terminal, and what an agent may ask of the same.

Promises that the person may choose any live session and an agent only its own,
and that each answer says what now holds.
"""

from __future__ import annotations

import os
from typing import Any

from bridge.core import authority, standing, texts
from bridge.core.caller import Nobody, OwnSession, Person
from bridge.core.records import AttachmentState
from bridge.core.routing import HOOK
from bridge.driver import attaching, chats, identity, outgoing, table
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import Refused
from bridge.local import replies, requests
from bridge.local.requests import AnyRequest
from bridge.providers import discovery, process
from bridge.providers.known import provider_named
from bridge.upstream import api
from bridge.version import VERSION

Asker = OwnSession | Person | Nobody
_NAMES_SHOWN = 5


# ---- the bridge -------------------------------------------------------------------


def hello(bridge: Bridge) -> replies.HelloReply:
    """A living bridge, and since when."""
    return replies.HelloReply(
        version=VERSION,
        pid=os.getpid(),
        state="stopping" if bridge.stopping.is_set() else "running",
        server=bridge.link.name,
        uptime_s=bridge.clock.running() - bridge.started_at,
    )


def status(bridge: Bridge) -> replies.StatusReply:
    """Everything a person may want to know."""
    said = hello(bridge)
    rows = table.rows(bridge)
    return replies.StatusReply(
        version=said.version,
        pid=said.pid,
        state=said.state,
        server=said.server,
        uptime_s=said.uptime_s,
        attachments=rows,
        waiting=tuple(
            f"{row.name}: {f'{row.pending} waiting, ' if row.pending else ''}{row.why}"
            for row in rows
            if row.why
        ),
        warnings=(
            *bridge.warnings,
            *bridge.storage_troubles.values(),
            *_server_trouble(bridge),
        ),
        last_privileged=bridge.last_privileged,
        told=tuple(bridge.told),
    )


def _server_trouble(bridge: Bridge) -> tuple[str, ...]:
    """A sentence while streams find no server; one that we host has its own."""
    queues = [queue for queue in bridge.roster if table.is_cut_off(queue)]
    if not queues or bridge.warnings:
        return ()
    names = sorted(queue.record.name for queue in queues)
    shown = [*names[:_NAMES_SHOWN], *(["others"] if names[_NAMES_SHOWN:] else [])]
    return (texts.cut_off(shown, queues[0].stream_trouble),)


def stop(bridge: Bridge) -> replies.StopReply:
    """End in order; the answer goes out first."""
    bridge.stopping.set()
    return replies.StopReply(os.getpid())


# ---- attach ------------------------------------------------------------------------


async def prepare(
    bridge: Bridge, caller: Asker, request: requests.Prepare
) -> replies.PrepareReply:
    """What an attach would choose from."""
    if isinstance(caller, OwnSession):
        chosen = (request.provider, request.session_id, request.native_pid)
        refusal = authority.may_attach(
            caller,
            *chosen,
            native_remote=request.native_remote,
            is_account_wide=request.is_account_wide,
        )
        identity.check(refusal)
        own = _own_row(bridge, caller, request.folder)
        return replies.PrepareReply("own", (own,))
    chats.checked_remote(request.native_remote, request.provider)
    found = await chats.live(bridge)
    wanted = [each for each in found if request.provider in ("", each.provider)]
    return replies.PrepareReply("person", tuple(_row(bridge, each) for each in wanted))


def _row(bridge: Bridge, found: discovery.LiveSession) -> replies.SessionRow:
    known = bridge.roster.present(
        found.provider, found.session_id, process.key_of(found.process)
    )
    return replies.SessionRow(
        provider=found.provider,
        session_id=found.session_id,
        pid=found.process.pid,
        folder=found.folder,
        attached_as=known.record.name if known is not None else "",
        note=found.name,
        wake=_wake_notice(bridge, found.provider),
    )


def _wake_notice(bridge: Bridge, provider: str) -> str:
    """What a message that starts a turn runs under, where one may."""
    may_wake = bridge.may_wake and any(
        route != HOOK for route in provider_named(provider).ROUTES
    )
    return texts.wake_notice(provider) if may_wake else ""


def _own_row(bridge: Bridge, caller: OwnSession, folder: str) -> replies.SessionRow:
    session_id = identity.own_session(bridge, caller)
    key = process.key_of(caller.process)
    known = bridge.roster.present(caller.provider, session_id, key)
    return replies.SessionRow(
        provider=caller.provider,
        session_id=session_id,
        pid=caller.process.pid,
        folder=folder,
        attached_as=known.record.name if known is not None else "",
    )


async def attach(
    bridge: Bridge, caller: Asker, request: requests.Attach
) -> replies.AttachReply:
    """Bind a name: the person to any live session, an agent to its own."""
    identity.check(
        authority.may_attach(
            caller,
            request.provider,
            request.session_id,
            request.native_pid,
            request.confirm,
            request.native_remote,
            has_wishes=request.wants is not None or bool(request.tmux_pane),
        )
    )
    if isinstance(caller, OwnSession):
        wish = _own_wish(bridge, caller, request)
    else:
        wish = await _chosen_wish(bridge, request)
        bridge.note_privileged("attach", getattr(caller, "description", ""))
    done = await attaching.attach(bridge, wish)
    record, route = done.record, table.route(bridge, done.record)
    queue = bridge.roster.get(record.attachment_id)
    why = table.why_not_woken(bridge, queue) if queue is not None else ""
    is_deaf = route == standing.HOOKS_NOT_LOADED
    reload = texts.plugin_needs_reload(record.provider) if is_deaf else ""
    return replies.AttachReply(
        name=record.name,
        attachment_id=record.attachment_id,
        provider=record.provider,
        session_id=record.session_id,
        state=record.state.value,
        route=route,
        notes=tuple(filter(None, (reload, why))),
    )


def _own_wish(
    bridge: Bridge, caller: OwnSession, request: requests.Attach
) -> attaching.Wish:
    session_id = identity.own_session(bridge, caller)
    known = bridge.roster.known(caller.provider, session_id)
    named = bridge.roster.named(request.name) if request.name else None
    identity.check(
        authority.may_take_name(
            caller,
            request.name or (known.record.name if known is not None else ""),
            known.record.name if known is not None else "",
            is_others=named is not None and named is not known,
        )
    )
    return attaching.Wish(
        provider=caller.provider,
        session_id=session_id,
        key=process.key_of(caller.process),
        name=request.name,
        folder=request.folder,
        purpose=request.purpose,
        by_person=False,
    )


async def _chosen_wish(bridge: Bridge, request: requests.Attach) -> attaching.Wish:
    chosen = await chats.chosen(bridge, request)
    return attaching.Wish(
        provider=chosen.provider,
        session_id=chosen.session_id,
        key=chosen.key,
        name=request.name,
        folder=request.folder,
        purpose=request.purpose,
        native_remote=request.native_remote,
        tmux=chats.checked_pane(request.tmux_socket, request.tmux_pane),
        wants=request.wants,
    )


async def detach(
    bridge: Bridge, caller: Asker, request: requests.Detach
) -> replies.DetachReply:
    """End an attachment; the answer lists what was never sent."""
    queue = _to_detach(bridge, caller, request.name)
    is_own = isinstance(caller, OwnSession) and queue is _own_or_none(bridge, caller)
    identity.check(authority.may_detach(caller, queue.record.made_by, is_own))
    if isinstance(caller, Person):
        bridge.note_privileged("detach", caller.description)
    unsent = await attaching.detach(bridge, queue)
    return replies.DetachReply(queue.record.name, unsent)


def _to_detach(bridge: Bridge, caller: Asker, name: str) -> AttachmentQueue:
    if name:
        return attaching.named(bridge, name)
    if isinstance(caller, OwnSession):
        return identity.own_queue(bridge, caller)
    known = [
        queue
        for queue in bridge.roster
        if queue.is_present or queue.record.state is AttachmentState.OFFLINE
    ]
    if not known:
        raise Refused(
            "not_attached",
            "No chat of this computer is attached, so there is nothing to detach.",
        )
    if len(known) != 1:
        raise Refused(
            "name_needed",
            f"{len(known)} chats are attached, so say which one to detach.",
            "See their names: agentworks agents",
        )
    return known[0]


def _own_or_none(bridge: Bridge, caller: OwnSession) -> AttachmentQueue | None:
    try:
        return identity.own_queue(bridge, caller)
    except Refused:
        return None


# ---- the account's addresses ---------------------------------------------------------


async def messages(bridge: Bridge, request: AnyRequest) -> dict[str, Any]:
    """The public `messages` tool with the person's own login."""
    arguments = _arguments(request)
    wait_s = float(str(arguments.get("wait_seconds", 0)))
    given = {key: value for key, value in arguments.items() if value not in ("", None)}
    return await api.call_messages(bridge.link.parent, given, wait_s)


def _arguments(request: AnyRequest) -> dict[str, object]:
    match request:
        case requests.MessagesRegister():
            allowed = request.allow_connections
            return {
                "action": "register",
                "agent_name": request.agent,
                "allowed_connection_ids": None if allowed is None else list(allowed),
            }
        case requests.MessagesUnregister(agent=agent):
            return {"action": "unregister", "agent_name": agent}
        case requests.MessagesSend():
            return {
                "action": "send",
                "agent_name": request.agent,
                "target": request.target,
                "inbox_id": request.inbox_id,
                "message": outgoing.checked_body(request.message),
                "submission_id": request.submission_id,
            }
        case requests.MessagesRead():
            return {
                "action": "read",
                "agent_name": request.agent,
                "inbox_id": request.inbox_id,
                "after": request.after,
                "limit": request.limit,
                "wait_seconds": int(request.wait_s),
            }
        case requests.MessagesState(inbox_id=inbox_id):
            return {"action": "state", "inbox_id": inbox_id}
        case _:
            return {"action": "list_agents"}
