"""One message from the stream into the journal, if there is room.

Promises that body and watermark are one commit, that a message which any session
of this agent may have seen is not taken again, that of an id which comes with two
contents the first is kept and the second logged, and that without room the stream
is asked to keep its messages while everything else still comes.
"""

from __future__ import annotations

from msgspec.structs import replace

from bridge.core import quota, release
from bridge.core.effects import Save, SaveAttachment
from bridge.core.events import Pressure, Received
from bridge.core.records import Delivery, Message
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue

# Rows given back at once, so that a full attachment does not pay for each message.
_RETIRED_AT_ONCE = 100


async def receive(
    bridge: Bridge, queue: AttachmentQueue, message: Message, heard_at: float
) -> None:
    """Keep the message; without room nothing changes and the queue is full."""
    async with queue.turn:
        if not await _has_room(bridge, queue, message):
            if not queue.is_full:
                bridge.tell_person("journal_full", queue.record.name)
            queue.lacks_bytes = _size(message)
            return
        known = queue.deliveries.get(message.message_id)
        if known is not None and not _is_same(known, message):
            queue.count("Changed")
            bridge.log.warning("message_changed", message_id=message.message_id)
        is_new = message.sequence > queue.record.watermark
        wanted = is_new and not await _was_seen(bridge, queue, message)
        also: list[Save] = []
        # An id that comes again at a later place is not taken again, and must not
        # be replayed for ever (test_an_id_that_is_used_again_is_passed_over).
        if is_new and (not wanted or known is not None):
            also = [SaveAttachment(replace(queue.record, watermark=message.sequence))]
        event = Received(bridge.clock.wall(), message, wanted)
        for effect in await queue.take([(message.message_id, event)], also):
            queue.count(type(effect).__name__)
        if is_new:  # at or below the watermark nothing is taken again
            queue.acknowledged_by_hand.pop(message.message_id, None)
        queue.releases = release.arrived(queue.releases, message.message_id, heard_at)
        queue.wake()


async def pass_over(queue: AttachmentQueue, sequence: int) -> None:
    """An event that cannot be read must not stop those behind it."""
    async with queue.turn:
        if sequence > queue.record.watermark:
            record = replace(queue.record, watermark=sequence)
            await queue.commit([SaveAttachment(record)])


async def look_for_room(bridge: Bridge, queue: AttachmentQueue) -> None:
    """A queue that was full takes messages again once there is room enough.

    That is for the message that found none, too: its stream would only be closed
    again (test_a_stream_is_not_reopened_for_a_message_without_room). What is done
    with makes room, or no stream would ever be opened again for it
    (test_what_was_dealt_with_makes_room_for_what_the_server_keeps).
    """
    if queue.lacks_bytes is None:
        return
    async with queue.turn:
        surplus = quota.surplus_rows(queue.usage(), bridge.limits)
        await _retire(bridge, queue, surplus)
    allowed = _allowed(bridge, queue)
    if quota.may_resume(queue.usage(), allowed, bridge.limits) and quota.has_room(
        queue.usage(), queue.lacks_bytes, allowed, bridge.limits
    ):
        queue.lacks_bytes = None
        bridge.tell_person("room_again", queue.record.name)


def _is_same(known: Delivery, message: Message) -> bool:
    """What is still known of it agrees; the first that came is kept anyway."""
    first = (known.sequence, known.sender, known.inbox_id, known.sent_at)
    again = (message.sequence, message.sender, message.inbox_id, message.sent_at)
    return first == again and known.body in (None, message.body)


def _size(message: Message) -> int:
    return len(message.body.encode("utf-8", "surrogatepass"))


async def _was_seen(bridge: Bridge, queue: AttachmentQueue, message: Message) -> bool:
    if message.message_id in queue.acknowledged_by_hand:
        return True
    return await bridge.journal.was_offered(queue.record.agent_id, message.message_id)


async def _has_room(bridge: Bridge, queue: AttachmentQueue, message: Message) -> bool:
    if len(queue.deliveries) >= bridge.limits.rows:
        # Rows that are done with hold no body: without bytes they give none back
        # (test_a_lack_of_bytes_forgets_no_row).
        await _retire(bridge, queue, _RETIRED_AT_ONCE)
    size, allowed = _size(message), _allowed(bridge, queue)
    return quota.has_room(queue.usage(), size, allowed, bridge.limits)


def _allowed(bridge: Bridge, queue: AttachmentQueue) -> int:
    holdings = bridge.roster.holdings
    return holdings.allowance(queue.record.attachment_id, bridge.limits)


async def _retire(bridge: Bridge, queue: AttachmentQueue, count: int) -> None:
    if not count:
        return
    rows = quota.retire_under_pressure(queue.deliveries.values(), count)
    at = bridge.clock.wall()
    await queue.take([(row.message_id, Pressure(at)) for row in rows])
