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
            queue.lacks_bytes = _size(message)
            bridge.log.warning("journal_full", name=queue.record.name)
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
        queue.releases = release.arrived(queue.releases, message.message_id, heard_at)
        queue.wake()


async def pass_over(queue: AttachmentQueue, sequence: int) -> None:
    """An event that cannot be read must not stop those behind it."""
    async with queue.turn:
        if sequence > queue.record.watermark:
            record = replace(queue.record, watermark=sequence)
            await queue.commit([SaveAttachment(record)])


def look_for_room(bridge: Bridge, queue: AttachmentQueue) -> None:
    """A queue that was full takes messages again once there is room enough.

    That is for the message that found none, too: its stream would only be closed
    again (test_a_stream_is_not_reopened_for_a_message_without_room).
    """
    if queue.lacks_bytes is None:
        return
    used, attachment_id = bridge.usage(), queue.record.attachment_id
    if quota.may_resume(used, attachment_id, bridge.limits) and quota.has_room(
        used, attachment_id, queue.lacks_bytes, bridge.limits
    ):
        queue.lacks_bytes = None


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
    size = _size(message)
    attachment_id = queue.record.attachment_id
    if quota.has_room(bridge.usage(), attachment_id, size, bridge.limits):
        return True
    rows = quota.retire_under_pressure(queue.deliveries.values(), _RETIRED_AT_ONCE)
    at = bridge.clock.wall()
    await queue.take([(row.message_id, Pressure(at)) for row in rows])
    return quota.has_room(bridge.usage(), attachment_id, size, bridge.limits)
