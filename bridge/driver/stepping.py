"""One event of an attachment, and everything outside that follows from it.

Owns how each effect of the attachment machine is carried out. Promises that the
record is saved before anything of it can be seen, and that a server which does
not answer never keeps a session from ending here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import trio

from bridge.core import receipts, reconnect
from bridge.core.effects import (
    CloseStream,
    Effect,
    EraseTokens,
    ForgetAttachment,
    OpenStream,
    Refuse,
    TellPerson,
    TellServerDetached,
    TellServerOffline,
)
from bridge.core.events import DetachFinished, Event, ServerReplaced
from bridge.core.records import AttachmentState
from bridge.driver import streaming
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError, Refused
from bridge.upstream import api, failures

# The server is told of an end in passing; the session has ended whatever it says.
_TELL_S = 5.0
# An offer that is out when its session is detached has ended by then.
_OFFER_S = 10.0


async def step(
    bridge: Bridge,
    queue: AttachmentQueue,
    event: Event,
    of_stream: trio.CancelScope | None = None,
) -> None:
    """Run the event and carry out its effects in order; raises Refused for a no.

    `of_stream` is the stream that says it: nothing happens when another one has
    taken its place.
    """
    async with queue.turn:
        # Race: an attach renewed the lease while the old stream was ending
        # (test_what_an_old_stream_says_of_its_end_is_not_heard).
        if of_stream is not None and queue.stream is not of_stream:
            return
        effects = await queue.step(event)
        await _inside(bridge, queue, effects)
    await _outside(bridge, queue, effects)


def reopen_stream(bridge: Bridge, queue: AttachmentQueue) -> None:
    """An attached session that has no stream gets one."""
    if queue.is_live and queue.stream is None:
        streaming.open_stream(bridge, queue, partial(_stream_over, bridge, queue))


async def _stream_over(
    bridge: Bridge, queue: AttachmentQueue, scope: trio.CancelScope, event: Event
) -> None:
    await bridge.until_saved(partial(step, bridge, queue, event, scope))


async def _inside(
    bridge: Bridge, queue: AttachmentQueue, effects: Iterable[Effect]
) -> None:
    """What belongs to this queue itself; the turn is held."""
    for effect in effects:
        match effect:
            case CloseStream():
                queue.close_stream()
            case EraseTokens():
                # Race: outside of the turn it could erase the tokens of the next
                # lease (test_what_an_old_stream_says_of_its_end_is_not_heard).
                await bridge.leases.erase(queue.record.attachment_id)
                bridge.link.forget(queue.record.attachment_id)
            case Refuse():
                raise Refused(effect.code, effect.message)
            case _:
                pass


async def _outside(
    bridge: Bridge, queue: AttachmentQueue, effects: Iterable[Effect]
) -> None:
    for effect in effects:
        match effect:
            case OpenStream():
                queue.told = ""
                streaming.open_stream(
                    bridge, queue, partial(_stream_over, bridge, queue)
                )
            case TellServerOffline():
                bridge.start(_tell_offline, bridge, queue)
            case TellServerDetached():
                bridge.start(_tell_detached, bridge, queue)
            case ForgetAttachment():
                async with queue.turn:
                    if not queue.is_forgotten:
                        await queue.commit([effect])
                bridge.roster.remove(queue)
            case TellPerson(code=code):
                bridge.tell_person(code, queue.record.name)
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
    backoff, is_told = reconnect.Backoff(), True
    while queue.record.state is AttachmentState.DETACHING:
        try:
            is_told = await _tell_last_signs(bridge, queue)
            await api.detach(bridge.link.parent, queue.record.attachment_id)
        except BridgeError as error:
            if isinstance(error, Refused) and failures.is_answer(error):
                break  # it knows no such lease any more: that is what we want
            bridge.log.warning("detach_not_told", code=error.code)
            fraction = bridge.clock.random_fraction()
            backoff, wait_s = reconnect.failed(backoff, 0.0, fraction)
            await trio.sleep(wait_s)
        else:
            break
    at = bridge.clock.wall()
    queue.told = "detached"  # whatever of it has to stay, its person ended it
    await step(bridge, queue, DetachFinished(at) if is_told else ServerReplaced(at))


async def _tell_last_signs(bridge: Bridge, queue: AttachmentQueue) -> bool:
    """What the session saw and said, or its name's next session sees it again.

    False when the server takes it from this lease no more
    (test_a_detach_first_tells_what_was_offered).
    """
    with trio.move_on_after(_OFFER_S):
        await queue.wait_for_offer()
    signs = receipts.due(queue.receipts.values())
    attachment_id = queue.record.attachment_id
    try:
        for start in range(0, len(signs), api.RECEIPTS_LIMIT):
            caller = await bridge.link.child(attachment_id)
            some = signs[start : start + api.RECEIPTS_LIMIT]
            await api.send_receipts(caller, attachment_id, some)
    except Refused as error:
        bridge.log.info("last_signs_refused", code=error.code)
        return False
    return True
