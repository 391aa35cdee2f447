"""The extensions of ours that are connected, each for one chat of its program.

Promises that only the program itself may bring a chat's way, that a newer
connection of the same chat replaces the older one, and that a program with one
chat at a time, which speaks of another one now, has left the chat before.
"""

from __future__ import annotations

import trio

from bridge.core.caller import HookCaller, hook_caller
from bridge.core.ids import SessionId
from bridge.core.records import ProcessKey
from bridge.driver import hooks, identity, natives
from bridge.driver.bridge import Bridge
from bridge.errors import Invalid, Refused
from bridge.local.connection import Connection
from bridge.providers import process
from bridge.providers.host_json import is_session_id
from bridge.providers.known import provider_named
from bridge.routes.adapter import AdapterWay, Lines, Said

Chat = tuple[str, str, ProcessKey]


async def serve_route(bridge: Bridge, connection: Connection) -> None:
    """Serve an extension until it or we close; raises BridgeError for a no."""
    chat = _admitted(bridge, connection)
    provider, session_id, key = chat
    way = AdapterWay(provider, SessionId(session_id), key.pid, connection)
    _put(bridge, chat, way)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_listen, bridge, connection, chat, way)
            await hooks.note_open_chat(bridge, provider, session_id, key)
            await _use(bridge, chat)
            await way.over.wait()
            nursery.cancel_scope.cancel()
    finally:
        way.end()
        if bridge.adapters.get(chat) is way:
            del bridge.adapters[chat]
    await _drop(bridge, chat, way)


def _admitted(bridge: Bridge, connection: Connection) -> Chat:
    """The chat that this connection may carry; raises Refused or Invalid."""
    name, session_id = connection.header.words
    provider, pid = provider_named(name), connection.peer.pid
    if not is_session_id(session_id):
        raise Invalid("bad_frame", "An extension named a chat that cannot be one.")
    caller = hook_caller(name, identity.evidence(bridge, pid, looks_above=False))
    if not isinstance(caller, HookCaller):
        raise Refused(caller.code, caller.reason, caller.hint)
    if not provider.IS_IN_PROCESS or caller.process.pid != pid:
        raise Refused(
            "not_its_host",
            f"This process is not {provider.TITLE} itself, so it may not carry the "
            "messages of its chats.",
        )
    return name, session_id, process.key_of(caller.process)


def _put(bridge: Bridge, chat: Chat, way: AdapterWay) -> None:
    before = bridge.adapters.get(chat)
    bridge.adapters[chat] = way
    if isinstance(before, AdapterWay):
        before.end()


async def _listen(
    bridge: Bridge, connection: Connection, chat: Chat, way: AdapterWay
) -> None:
    lines = Lines()
    chunk = connection.take_received()
    try:
        while True:
            for said in lines.feed(chunk):
                way.hear(said)
                _note(bridge, chat, said)
            chunk = bytes(await connection.stream.receive_some())
            if not chunk:
                break
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        bridge.log.debug("extension_gone", provider=chat[0])
    except Invalid as error:
        bridge.log.warning("extension_unclear", provider=chat[0], why=error.message)
    finally:
        way.end()


def _note(bridge: Bridge, chat: Chat, said: Said) -> None:
    """The chat is there; whether it is at work it says itself."""
    queue = bridge.roster.present(*chat)
    if queue is None:
        return
    queue.last_contact_at = bridge.clock.wall()
    if said.idle is not None:
        queue.is_idle = said.idle


async def _use(bridge: Bridge, chat: Chat) -> None:
    queue = bridge.roster.present(*chat)
    if queue is not None:
        queue.hooks_heard = True
        await natives.look(bridge, queue)


async def _drop(bridge: Bridge, chat: Chat, way: AdapterWay) -> None:
    queue = bridge.roster.present(*chat)
    if queue is not None:
        await natives.drop(bridge, queue, way)
        await natives.look(bridge, queue)
