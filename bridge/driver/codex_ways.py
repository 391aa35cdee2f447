"""Which of Codex's native ways leads to an attached chat.

Owns the choice of the server. Promises that it is either the one that the person
named, or the attachment's own process by the kernel's word on who listens; never
one that was merely found, and none for a chat that `codex exec` runs; and that a
desktop app is only asked about a chat whose process it started.
"""

from __future__ import annotations

import os

from bridge.core import remotes
from bridge.core.caller import ProcessFacts
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import Refused
from bridge.peer import Peer
from bridge.providers import codex_server, process
from bridge.routes.codex_app_server import CodexAppServer
from bridge.routes.codex_desktop import CodexDesktop
from bridge.routes.way import Way


async def app_server(
    bridge: Bridge, queue: AttachmentQueue, facts: ProcessFacts
) -> Way | None:
    """The app-server that serves this chat, or None where there is none to ask.

    Raises Refused or Unavailable with why the one that there is cannot be used.
    """
    way = _app_server(queue, facts)
    if way is not None:
        await way.check()
    return way


def _app_server(queue: AttachmentQueue, facts: ProcessFacts) -> CodexAppServer | None:
    session_id, named = queue.record.session_id, remotes.named(queue.record.wants)
    if codex_server.runs_once(facts):
        if named is None:
            return None
        raise Refused(
            "native_thread",
            "This chat belongs to codex exec, which ends by itself and may lose what"
            " is handed to it, so it is not woken.",
            "Messages still come by its hooks.",
        )
    own = codex_server.own_socket(facts, process.marks_of(facts.pid) or {})
    if named is not None and not _is_same_place(named.path, own):
        return CodexAppServer(session_id, named.path, _is_server, may_queue=True)
    if own is None:
        return None

    def is_own_process(peer: Peer) -> bool:
        return peer.pid == facts.pid

    return CodexAppServer(session_id, own, is_own_process)


async def desktop(
    bridge: Bridge, queue: AttachmentQueue, facts: ProcessFacts
) -> Way | None:
    """The desktop app, where the person named its socket and it started this chat.

    Raises Refused or Unavailable with why it cannot be used.
    """
    named = remotes.named(queue.record.wants)
    if named is None or named.route != CodexDesktop.route:
        return None
    ancestry = process.ancestry_of(facts.pid)
    above = {each.pid for each in ancestry.chain}

    def is_app(peer: Peer) -> bool:
        return ancestry.whole and peer.pid in above

    way = CodexDesktop(
        queue.record.session_id, named.path, is_app, bridge.clock.random_bytes
    )
    await way.check()
    return way


def _is_same_place(path: str, own: str | None) -> bool:
    return own is not None and os.path.realpath(path) == os.path.realpath(own)


def _is_server(peer: Peer) -> bool:
    facts = process.facts_of(peer.pid)
    return facts is not None and codex_server.is_server(facts)
