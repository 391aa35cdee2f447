"""The access that an agy process gives to its own hooks, and the way it opens.

Promises that an access is read only from the environment of a hook that the very
process started, for the conversation that the hook's input names too; that it is
held in memory alone, for as long as that process lives; and that it is never logged.
"""

from __future__ import annotations

from bridge.core.caller import ProcessFacts
from bridge.core.records import ProcessKey
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.providers import agy, process
from bridge.routes.agy_agentapi import (
    ADDRESS_VARIABLE,
    CONVERSATION_VARIABLE,
    TOKEN_VARIABLE,
    Access,
    AgyAgentapi,
    access_of,
)
from bridge.routes.way import Way

_VARIABLES = frozenset({ADDRESS_VARIABLE, TOKEN_VARIABLE, CONVERSATION_VARIABLE})


def take_access(bridge: Bridge, queue: AttachmentQueue, hook_pid: int) -> None:
    """Keep what this hook of the attached chat was given; it may change each turn.

    To be called while the hook waits for its answer, after it was found to be the
    process's own.
    """
    record = queue.record
    if record.provider != agy.NAME:
        return
    given = process.variables_of(hook_pid, _VARIABLES) or {}
    if given.get(CONVERSATION_VARIABLE) != record.session_id:
        return
    access = access_of(given.get(ADDRESS_VARIABLE, ""), given.get(TOKEN_VARIABLE, ""))
    if access is not None:
        bridge.accesses[record.process_key, record.session_id] = access


async def agentapi(
    bridge: Bridge, queue: AttachmentQueue, facts: ProcessFacts
) -> Way | None:
    """The way of this conversation, if a hook of its process gave access to it."""
    record = queue.record

    def access() -> Access | None:
        return _access(bridge, record.process_key, record.session_id)

    way = AgyAgentapi(record.session_id, access)
    return way if await way.is_open() else None


def _access(bridge: Bridge, key: ProcessKey, session_id: str) -> Access | None:
    return bridge.accesses.get((key, session_id)) if process.is_alive(key) else None
