"""Messages from the stream into the journal, if there is room.

Promises that body and watermark are one commit, that a message which any session
of this agent may have seen is not taken again, that of an id which comes with two
contents the first is kept and the second logged, and that without room the stream
is asked to keep its messages while everything else still comes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from bridge.core import quota, release
from bridge.core.effects import Save, SaveAttachment
from bridge.core.events import Pressure, Received
from bridge.core.ids import MessageId
from bridge.core.records import Delivery, Message
from bridge.driver import noticing
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue

# Rows given back at once, so that a full attachment does not pay for each message.
_RETIRED_AT_ONCE = 100


async def receive(
    bridge: Bridge, queue: AttachmentQueue, message: Message, heard_at: float
) -> None:
    """Keep the message; without room nothing changes and the queue is full."""
    await receive_page(bridge, queue, [message], heard_at)


async def receive_page(
    bridge: Bridge, queue: AttachmentQueue, page: Sequence[Message], heard_at: float
) -> None:
    """Keep messages that came together, all in one commit.

    Their places rise and their ids differ. The first that finds no room fills the
    queue, and it and those behind it change nothing. `heard_at` is when the first
    of them was heard, in running seconds.
    """
    async with queue.turn:
        fitting = await _with_room(bridge, queue, page)
        if not fitting:
            return
        seen = await _seen(bridge, queue, fitting)
        for message in fitting:
            _note_change(bridge, queue, message)
        at, last = bridge.clock.wall(), queue.record.watermark
        changes = [
            (each.message_id, Received(at, each, _is_wanted(each, last, seen)))
            for each in fitting
        ]
        for effect in await queue.take(changes, _passed(queue, fitting, seen)):
            queue.count(type(effect).__name__)
        for message in fitting:
            if message.sequence > last:  # at or below it nothing is taken again
                queue.acknowledged_by_hand.pop(message.message_id, None)
        ids = [each.message_id for each in fitting]
        queue.releases = release.arrived(queue.releases, ids, heard_at)
        queue.wake()
        queue.native.stir()
    if queue.is_idle:
        bridge.start(noticing.look, bridge, queue)


def _is_wanted(message: Message, watermark: int, seen: Collection[MessageId]) -> bool:
    """New here, and no session of this agent may have seen it."""
    return message.sequence > watermark and message.message_id not in seen


def _passed(
    queue: AttachmentQueue, page: Sequence[Message], seen: Collection[MessageId]
) -> list[Save]:
    """The watermark, where a message that is not kept must be passed over.

    An id that comes again at a later place is not taken again, and must not be
    replayed for ever (test_an_id_that_is_used_again_is_passed_over). It is the
    place of the last one: those before it are kept by the same commit
    (test_a_message_passed_over_in_a_page_does_not_lower_the_watermark).
    """
    last = queue.record.watermark
    is_passed = any(
        each.sequence > last
        and (each.message_id in seen or each.message_id in queue.deliveries)
        for each in page
    )
    through = page[-1].sequence
    if not is_passed or through <= last:
        return []
    return [SaveAttachment(replace(queue.record, watermark=through))]


async def _with_room(
    bridge: Bridge, queue: AttachmentQueue, page: Sequence[Message]
) -> Sequence[Message]:
    """Those up to the first that finds none; that one fills the queue."""
    if len(queue.deliveries) + len(page) > bridge.limits.rows:
        # Rows that are done with hold no body: without bytes they give none back
        # (test_a_lack_of_bytes_forgets_no_row).
        await _retire(bridge, queue, _RETIRED_AT_ONCE)
    used, allowed = queue.usage(), _allowed(bridge, queue)
    for number, message in enumerate(page):
        size = _size(message)
        if not quota.has_room(used, size, allowed, bridge.limits):
            if not queue.is_full:
                bridge.tell_person("journal_full", queue.record.name)
            queue.lacks_bytes = size
            return page[:number]
        used = quota.Usage(used.rows + 1, used.body_bytes + size)
    return page


def _note_change(bridge: Bridge, queue: AttachmentQueue, message: Message) -> None:
    known = queue.deliveries.get(message.message_id)
    if known is not None and not _is_same(known, message):
        queue.count("Changed")
        bridge.log.warning("message_changed", message_id=message.message_id)


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


async def _seen(
    bridge: Bridge, queue: AttachmentQueue, page: Sequence[Message]
) -> Collection[MessageId]:
    """What an agent acknowledged by hand, or any of its sessions may have seen."""
    by_hand = {
        each.message_id
        for each in page
        if each.message_id in queue.acknowledged_by_hand
    }
    asked = [
        each.message_id
        for each in page
        if each.sequence > queue.record.watermark and each.message_id not in by_hand
    ]
    if not asked:
        return by_hand
    return by_hand | await bridge.journal.offered_among(queue.record.agent_id, asked)


def _allowed(bridge: Bridge, queue: AttachmentQueue) -> int:
    holdings = bridge.roster.holdings
    return holdings.allowance(queue.record.attachment_id, bridge.limits)


async def _retire(bridge: Bridge, queue: AttachmentQueue, count: int) -> None:
    if not count:
        return
    rows = quota.retire_under_pressure(queue.deliveries.values(), count)
    at = bridge.clock.wall()
    await queue.take([(row.message_id, Pressure(at)) for row in rows])
