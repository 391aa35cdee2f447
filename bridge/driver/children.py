"""One MCP child: its tools are the verbs of the session its host names.

A child that was asked to push is a channel too (channels.py).

Promises that a tool acts for the session of the host's own word, never of an
argument, and that a chat which is not attached is told how it could be.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import msgspec
import trio

from bridge.core import loopguard, texts
from bridge.core.caller import ChildCaller, child_caller
from bridge.core.visible import visible
from bridge.driver import channels, identity, verbs
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError, Refused
from bridge.local.connection import Connection
from bridge.providers import process
from bridge.providers.known import provider_named


async def serve_child(bridge: Bridge, connection: Connection) -> None:
    """Serve an MCP child until its host closes it."""
    name = connection.header.words[0] if connection.header.words else ""
    provider_named(name)
    caller = child_caller(name, identity.evidence(bridge, connection.peer.pid))
    # Only a bridge with an MCP child pays for the SDK: 36 MB without, 72 with.
    # Race: a host starts its hooks beside its tools, and loading takes longer than
    # they wait (test_hooks_are_answered_while_the_tools_are_loaded).
    await trio.to_thread.run_sync(import_module, "bridge.tools.server")
    from bridge.tools.server import ToolCall, ToolOutcome, serve_mcp

    async def call(asked: ToolCall) -> ToolOutcome:
        try:
            if not isinstance(caller, ChildCaller):
                raise Refused(caller.code, caller.reason, caller.hint)
            queue = _queue(bridge, caller, asked.meta)
            answer = await verbs.perform(bridge, queue, asked.verb, asked.arguments)
            channels.heard_answer(bridge, process.key_of(caller.process), asked.verb)
        except BridgeError as error:
            return ToolOutcome(visible(error.sentence()), is_error=True)
        return ToolOutcome(msgspec.json.encode(answer).decode(), is_error=False)

    first_bytes = connection.take_received()
    if not channels.is_asked_for(connection.header, caller):
        await serve_mcp(connection.stream, first_bytes, call)
        return
    with channels.opening(bridge, caller) as opened:
        await serve_mcp(connection.stream, first_bytes, call, opened)


def _queue(
    bridge: Bridge, caller: ChildCaller, meta: Mapping[str, object]
) -> AttachmentQueue:
    """The attachment that this call speaks for; raises Refused."""
    session_id = _session(bridge, caller, meta)
    key = process.key_of(caller.process)
    queue = bridge.roster.present(caller.provider, session_id, key)
    if queue is None:
        raise Refused("not_attached", texts.tool_of_unattached_chat(caller.provider))
    queue.last_contact_at = bridge.clock.wall()
    queue.guard = loopguard.tool_called(queue.guard, caller.provider)
    return queue


def _session(bridge: Bridge, caller: ChildCaller, meta: Mapping[str, object]) -> str:
    if identity.has_one_chat(caller.provider):
        return identity.session_of_process(bridge, caller.provider, caller.process)
    thread = provider_named(caller.provider).thread_of_call(meta)
    thread = thread or caller.session_id or identity.only_chat(bridge, caller)
    if not thread:
        raise Refused(
            "session_unknown",
            f"{caller.provider} did not say which of its chats calls, and the bridge "
            "does not guess. Nothing was done.",
            "Update the program, or use agentworks bridge message in a shell.",
        )
    return thread
