"""Telling the person on their desktop that mail waits where nothing brings it.

Promises one notification for an idle chat until what waited is gone, none for a
chat that is busy, that a native way reaches or that a line in its pane tells of its
mail, and that a desktop which shows none is said once and harms nothing.
"""

from __future__ import annotations

from bridge.core import routing
from bridge.core.records import DeliveryState
from bridge.driver import nudging
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.providers.known import provider_named

# Nobody sits before it.
_WITHOUT_PERSON = ("script",)


async def look(bridge: Bridge, queue: AttachmentQueue) -> None:
    """Tell the person, if nothing else brings what waits.

    To be called when mail came, when a turn has ended, when a native way is gone.
    """
    desktop, record = bridge.desktop, queue.record
    if not queue.is_live or record.provider in _WITHOUT_PERSON:
        return
    if not queue.releasable() or not _tells_person(queue):
        return
    pending = queue.in_state(DeliveryState.PENDING)
    queue.noticed = frozenset(row.message_id for row in pending)
    if await nudging.nudge(bridge, queue) or desktop is None:
        return
    why = await desktop.show(record.name, _link(record.provider, record.session_id))
    bridge.log.info("person_notified", name=record.name, why=why)
    if why and not bridge.lacks_desktop:
        bridge.lacks_desktop = True
        bridge.tell_person("not_notified", record.name)


def _tells_person(queue: AttachmentQueue) -> bool:
    way = queue.native.way
    pending = {row.message_id for row in queue.in_state(DeliveryState.PENDING)}
    return routing.choose(
        provider_named(queue.record.provider).ROUTES,
        {way.route} if way is not None else set(),
        queue.native.is_closed,
        queue.is_idle,
        was_told=not pending.isdisjoint(queue.noticed),
    ).tells_person


def _link(provider: str, session_id: str) -> str:
    """What opens the very chat, where the provider's app can be told so."""
    return f"codex://threads/{session_id}" if provider == "codex" else ""
