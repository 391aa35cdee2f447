"""One event of an attachment, and everything outside that follows from it.

Owns how each effect of the attachment machine is carried out. Promises that the
record is saved before anything of it can be seen, and that a server which does
not answer never keeps a session from ending here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import trio

from bridge.core import reconnect
from bridge.core.effects import (
    CloseStream,
    Effect,
    EndLease,
    EraseTokens,
    ForgetAttachment,
    OpenStream,
    OrphanSubmissions,
    Refuse,
    TellPerson,
    TellServerDetached,
    TellServerOffline,
)
from bridge.core.events import (
    DetachFinished,
    Event,
    LeaseEnded,
    LeaseRefused,
    SubmissionDetached,
)
from bridge.core.outbox import ANSWERED
from bridge.core.records import Attachment, AttachmentState
from bridge.driver import streaming
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError, Refused
from bridge.upstream import api

# The server is told of an end in passing; the session has ended whatever it says.
_TELL_S = 5.0


async def step(bridge: Bridge, queue: AttachmentQueue, event: Event) -> None:
    """Run the event and carry out its effects in order; raises Refused for a no."""
    async with queue.turn:
        effects = await queue.step(event)
        await _inside(queue, effects, event.at)
    await _outside(bridge, queue, effects, event.at)


async def _inside(queue: AttachmentQueue, effects: Iterable[Effect], at: float) -> None:
    """What changes this queue itself; the turn is held."""
    for effect in effects:
        match effect:
            case EndLease(reason=reason):
                ended = LeaseEnded(at, reason)
                await queue.take([(id_, ended) for id_ in queue.deliveries])
            case OrphanSubmissions(attachment=record):
                await _orphan(queue, record, at)
            case Refuse():
                raise Refused(effect.code, effect.message)
            case _:
                pass


async def _orphan(queue: AttachmentQueue, record: Attachment, at: float) -> None:
    is_detached = record.state in (AttachmentState.DETACHING, AttachmentState.DETACHED)
    event: Event = LeaseRefused(at, record.attachment_id)
    if is_detached:
        event = SubmissionDetached(at)
    for row in list(queue.submissions.values()):
        if row.state not in ANSWERED and row.attachment_id == record.attachment_id:
            await queue.submit(row.submission_id, event)


async def _outside(
    bridge: Bridge, queue: AttachmentQueue, effects: Iterable[Effect], at: float
) -> None:
    for effect in effects:
        match effect:
            case OpenStream():
                streaming.open_stream(bridge, queue, partial(step, bridge, queue))
            case CloseStream():
                queue.close_stream()
            case TellServerOffline():
                bridge.start(_tell_offline, bridge, queue)
            case TellServerDetached():
                bridge.start(_tell_detached, bridge, queue)
            case EraseTokens():
                await bridge.leases.erase(queue.record.attachment_id)
                bridge.link.forget(queue.record.attachment_id)
            case ForgetAttachment():
                async with queue.turn:
                    await queue.commit([effect])
                bridge.roster.remove(queue)
            case TellPerson(code=code):
                bridge.log.warning("person_told", code=code, name=queue.record.name)
                queue.told = code
            case _:
                pass


async def _tell_offline(bridge: Bridge, queue: AttachmentQueue) -> None:
    with trio.move_on_after(_TELL_S):
        try:
            caller = await bridge.link.child(queue.record.attachment_id)
            await api.report_offline(caller, queue.record.attachment_id)
        except BridgeError as error:
            bridge.log.info("offline_not_told", code=error.code)


async def _tell_detached(bridge: Bridge, queue: AttachmentQueue) -> None:
    """Revoke the child, however long the server is away; a start tries again."""
    backoff = reconnect.Backoff()
    while queue.record.state is AttachmentState.DETACHING:
        try:
            await api.detach(bridge.link.parent, queue.record.attachment_id)
        except Refused:
            break  # the server knows no such lease any more: that is what we want
        except BridgeError as error:
            bridge.log.warning("detach_not_told", code=error.code)
            fraction = bridge.clock.random_fraction()
            backoff, wait_s = reconnect.failed(backoff, 0.0, fraction)
            await trio.sleep(wait_s)
        else:
            break
    await step(bridge, queue, DetachFinished(bridge.clock.wall()))
