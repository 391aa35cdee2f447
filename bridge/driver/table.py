"""What a person sees of the attachments: rows, and why mail waits.

Owns the reasons. Promises that each waiting message has one, in plain words, and
that a lease which ended is shown for a day, so that nobody vanishes without a word.
"""

from __future__ import annotations

from bridge.core import standing, texts
from bridge.core.loopguard import Verdict
from bridge.core.records import (
    Attachment,
    AttachmentState,
    Delivery,
    DeliveryState,
)
from bridge.core.release import FRESH_S
from bridge.core.render import short_session
from bridge.driver import finding
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.local.replies import AgentRow
from bridge.providers import codex_trust, process

_SHOWN = {
    AttachmentState.ATTACHED: 0,
    AttachmentState.HELD: 1,
    AttachmentState.OFFLINE: 2,
    AttachmentState.DETACHING: 3,
    AttachmentState.REPLACED: 4,
    AttachmentState.REVOKED: 4,
}
_OVER = (AttachmentState.REPLACED, AttachmentState.REVOKED)
_OVER_SHOWN_S = 24 * 3600.0
_TOLD_BY_STATE = (AttachmentState.HELD, *_OVER)
# What ends a stream and is said elsewhere: it is this computer's disk.
_OURS = ("storage_full", "journal_busy", "lease_locked", "lease_not_now")
_UNACKNOWLEDGED = (DeliveryState.OFFERED, DeliveryState.AMBIGUOUS)


def rows(bridge: Bridge, name: str = "") -> tuple[AgentRow, ...]:
    """Every attachment that a person may care for, attached first, then by name."""
    if name:
        wanted = bridge.roster.named(name)
        queues = [wanted] if wanted is not None else []
    else:
        queues = list(bridge.roster)
    queues = [queue for queue in queues if is_shown(bridge, queue)]
    queues.sort(key=lambda q: (_SHOWN[q.record.state], q.record.name.lower()))
    return tuple(row(bridge, queue) for queue in queues)


def is_shown(bridge: Bridge, queue: AttachmentQueue) -> bool:
    """Has the person to know of it? A newer one of its name or chat says enough."""
    record = queue.record
    if record.state not in _OVER:
        return record.state in _SHOWN
    if queue.told == "detached":
        return False
    since = bridge.clock.wall() - (record.offline_since or 0.0)
    is_newest = bridge.roster.named(record.name) is queue
    has_other = bridge.roster.known(record.provider, record.session_id) is not None
    return since <= _OVER_SHOWN_S and is_newest and not has_other


def row(bridge: Bridge, queue: AttachmentQueue) -> AgentRow:
    """One attachment as it stands now."""
    at = bridge.clock.wall()
    record = queue.record
    waiting = queue.in_state(DeliveryState.PENDING)
    unacknowledged = queue.in_state(*_UNACKNOWLEDGED)
    return AgentRow(
        name=record.name,
        provider=record.provider,
        session=short_session(record.session_id),
        state=record.state.value,
        route=route(bridge, record),
        purpose=record.purpose,
        pending=len(waiting),
        unacknowledged=len(unacknowledged),
        oldest_unacknowledged_s=_oldest(unacknowledged, at),
        last_contact_s=max(0.0, at - queue.last_contact_at)
        if queue.last_contact_at
        else None,
        why=_why(bridge, queue, len(waiting)),
        note=_note(bridge, queue),
        not_live=not_live(bridge, queue),
    )


def route(bridge: Bridge, record: Attachment) -> str:
    """How mail comes to it now."""
    queue = bridge.roster.get(record.attachment_id)
    if record.state is not AttachmentState.ATTACHED:
        return "-"
    if record.native_route:
        return record.native_route
    return standing.HOOKS_NOT_LOADED if queue and _is_deaf(queue) else "hook"


def not_live(bridge: Bridge, queue: AttachmentQueue) -> str:
    """Why no mail can come to it now; empty when some can."""
    record = queue.record
    if record.state is AttachmentState.HELD:
        return "waits for your yes"
    if record.state is AttachmentState.OFFLINE:
        since = record.offline_since
        ago_s = None if since is None else max(0.0, bridge.clock.wall() - since)
        return standing.stopped(ago_s, not process.is_alive(record.process_key))
    if record.state is AttachmentState.ATTACHED and _is_deaf(queue):
        return _why_deaf(bridge, queue)
    return ""


def _is_deaf(queue: AttachmentQueue) -> bool:
    """No hook of it was heard, and it has no other way."""
    record = queue.record
    is_script = record.provider == "script"
    return not (queue.hooks_heard or is_script or record.native_route)


def _why_deaf(bridge: Bridge, queue: AttachmentQueue) -> str:
    record = queue.record
    if record.provider != codex_trust.PROVIDER or not record.folder:
        return standing.HOOKS_NOT_LOADED
    environment = process.marks_of(record.process_key.pid) or {}
    return codex_trust.why_silent(record.folder, environment, bridge.paths.state)


def _note(bridge: Bridge, queue: AttachmentQueue) -> str:
    state, name = queue.record.state, queue.record.name
    if queue.told == "token_refused" or state in _TOLD_BY_STATE:
        return texts.told_person(queue.told or state.value, name)
    if queue.is_full:
        return texts.told_person("journal_full", name)
    return why_not_woken(bridge, queue)


def why_not_woken(bridge: Bridge, queue: AttachmentQueue) -> str:
    """Why its program is not used, where it could be; empty where all is well."""
    if not queue.is_live or queue.native.way is not None:
        return ""
    if bridge.lets_wake(queue):
        return queue.native.why
    if not finding.has_ways(queue.record.provider):
        return ""
    return texts.not_to_be_woken(in_settings=not bridge.may_wake)


def _oldest(rows_: list[Delivery], at: float) -> float | None:
    return max((max(0.0, at - each.changed_at) for each in rows_), default=None)


def is_cut_off(queue: AttachmentQueue) -> bool:
    """Attached, while the server was not there when it was last looked for."""
    is_servers = queue.stream_trouble not in ("", *_OURS)
    return queue.record.state is AttachmentState.ATTACHED and is_servers


def _why(bridge: Bridge, queue: AttachmentQueue, waiting: int) -> str:
    if not waiting and not queue.is_full:
        return "no connection to the server" if is_cut_off(queue) else ""
    if queue.record.state is AttachmentState.HELD:
        return "not confirmed by the person"
    if queue.told == "token_refused":
        return "its connection has ended; the person attaches the chat again"
    if queue.record.state is not AttachmentState.ATTACHED:
        return "the chat is offline"
    if queue.is_full:
        return "there is no room for more; the rest waits at the server"
    if not queue.releasable():
        return f"server silent for {_silent_s(bridge, queue):.0f} s"
    if queue.guard.verdict is Verdict.LIMIT_REACHED:
        return "too many turns in a row came from hooks; it comes in the next turn"
    return not_live(bridge, queue) or "no turn has ended"


def _silent_s(bridge: Bridge, queue: AttachmentQueue) -> float:
    since = queue.heard_server_at
    return FRESH_S if since is None else bridge.clock.running() - since
