"""Which native ways lead to an attached session now.

Owns the table of the finders. Promises that a way is only found for the exact
process and session of the attachment, both verified anew, and never by a name, a
folder or an age; and that where the person named a way, no other one is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from bridge.core import remotes
from bridge.core.caller import ProcessFacts
from bridge.core.ids import OfferId
from bridge.driver import agy_ways, channel_ways, codex_ways
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError
from bridge.providers import claude_registration, process, qwen
from bridge.providers.known import provider_named
from bridge.routes.claude_session import ClaudeSession
from bridge.routes.qwen_input import QwenInput
from bridge.routes.way import Way

Find = Callable[[Bridge, AttachmentQueue, ProcessFacts], Awaitable[Way | None]]


def has_ways(provider: str) -> bool:
    """Does this program have any native way?"""
    return any(route in FINDERS for route in provider_named(provider).ROUTES)


async def find(bridge: Bridge, queue: AttachmentQueue) -> Way | None:
    """The best way of this session that is open now, or None.

    `queue.native.why` says afterwards why there is none: the reason of the first
    route that could not be used.
    """
    queue.native.why = ""
    facts = process.facts_of(queue.record.process_key.pid)
    if facts is None or process.key_of(facts) != queue.record.process_key:
        queue.native.why = "This chat cannot be woken: its process has ended."
        return None
    named = remotes.named(queue.record.wants)
    for route in provider_named(queue.record.provider).ROUTES:
        if named is not None and route != named.route:
            continue  # the person named a way, and no other is theirs
        finder = FINDERS.get(route)
        try:
            way = await finder(bridge, queue, facts) if finder is not None else None
        except BridgeError as error:
            bridge.log.info("way_not_found", route=route, code=error.code)
            queue.native.why = queue.native.why or error.message
            continue
        if way is not None:
            queue.native.why = ""
            return way
    return None


async def _claude_session(
    bridge: Bridge, queue: AttachmentQueue, facts: ProcessFacts
) -> Way | None:
    session_id = queue.record.session_id

    def inbox() -> claude_registration.Inbox:
        return claude_registration.inbox_of(
            facts, process.marks_of(facts.pid), session_id
        )

    async def seen(offer_id: OfferId) -> None:
        while queue.guard.confirmed != offer_id:
            await queue.native.news.wait()

    way = ClaudeSession(session_id, facts.pid, inbox, seen)
    await way.check()
    return way


async def _adapter(
    bridge: Bridge, queue: AttachmentQueue, facts: ProcessFacts
) -> Way | None:
    """The extension of ours in the very program, if it is connected."""
    record = queue.record
    return bridge.adapters.get((record.provider, record.session_id, record.process_key))


async def _qwen_input(
    bridge: Bridge, queue: AttachmentQueue, facts: ProcessFacts
) -> Way | None:
    """The file that this program was started with, while it has this chat open."""
    path = qwen.input_file(facts)
    if path is None:
        return None

    def is_current() -> bool:
        heard = bridge.heard.get(queue.record.process_key)
        return heard == queue.record.session_id

    way = QwenInput(path, is_current)
    way.check()
    return way


FINDERS: Mapping[str, Find] = MappingProxyType(
    {
        "adapter": _adapter,
        "agy_agentapi": agy_ways.agentapi,
        "claude_channel": channel_ways.claude_channel,
        "claude_session": _claude_session,
        "codex_app_server": codex_ways.app_server,
        "codex_desktop": codex_ways.desktop,
        "qwen_input": _qwen_input,
    }
)
