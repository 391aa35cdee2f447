"""What the server's stream says to one attachment, until it ends and is opened again.

Promises that each message is in the journal before anything else happens with
it, that the server's word to hold back is obeyed at once, and that a lease which
is over is never asked for again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio
from msgspec.structs import replace

from bridge.core import reconnect, release
from bridge.core.effects import SaveAttachment
from bridge.core.events import (
    Event,
    Retracted,
    ServerHeld,
    ServerReplaced,
    ServerRevoked,
    TokenRefused,
    Unregistered,
)
from bridge.driver import receiving, stuck
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.driver.reporting import Reports
from bridge.driver.resuming import Wakefulness
from bridge.driver.stuck import SamePlace
from bridge.driver.together import PAGE, Together
from bridge.errors import BridgeError, Refused, Unavailable
from bridge.upstream import failures
from bridge.upstream import stream_events as said
from bridge.upstream.api import Caller
from bridge.upstream.sender import Sender
from bridge.upstream.stream import StreamPlace, read_stream

OnEnd = Callable[[trio.CancelScope, Event], Awaitable[None]]
_LEASE_OVER = {
    "replaced": ServerReplaced,
    "revoked": ServerRevoked,
    "detached": ServerRevoked,
    "held": ServerHeld,
    "unregistered": Unregistered,
}


# The server does not know our place in the mailbox: it has begun a new one.
_CURSOR_UNKNOWN = "wrong_cursor"


class _Full(Exception):
    """No room for more messages: the stream is opened again without them."""


def open_stream(bridge: Bridge, queue: AttachmentQueue, on_end: OnEnd) -> None:
    """Start the two tasks of this attachment; a running pair is ended first."""
    queue.close_stream()
    scope = trio.CancelScope()
    queue.stream = scope
    bridge.start(_run, bridge, queue, scope, on_end)


async def _run(
    bridge: Bridge, queue: AttachmentQueue, scope: trio.CancelScope, on_end: OnEnd
) -> None:
    ended: list[Event] = []
    with scope:
        try:
            caller = await _caller(bridge, queue)
        except Refused as error:
            ended.append(_end_of(bridge, error))
        else:
            ended.append(await _converse(bridge, queue, caller))
    # Race: what follows closes this very stream, so it runs outside of its scope
    # (test_a_replaced_lease_is_ended_whole).
    for event in ended:
        await on_end(scope, event)


async def _caller(bridge: Bridge, queue: AttachmentQueue) -> Caller:
    """Its proof, waited for while the system cannot read it; raises Refused."""
    backoff = reconnect.Backoff()
    while True:
        try:
            return await bridge.link.child(queue.record.attachment_id)
        except Unavailable as error:
            queue.stream_trouble = error.code
            fraction = bridge.clock.random_fraction()
            backoff, wait_s = reconnect.failed(backoff, 0.0, fraction)
            bridge.log.info("stream_ended", code=error.code, again_in_s=wait_s)
        await trio.sleep(wait_s)


async def _converse(bridge: Bridge, queue: AttachmentQueue, caller: Caller) -> Event:
    """Follow and send until one of them says that the lease is over."""
    sender = Sender(caller, queue.record.attachment_id, Reports(queue, bridge.clock))
    ended: list[Event] = []
    async with trio.open_nursery() as nursery:

        async def send() -> None:
            ended.append(_end_of(bridge, await sender.run()))
            nursery.cancel_scope.cancel()

        nursery.start_soon(send)
        ended.append(await _follow(bridge, queue, caller, sender))
        nursery.cancel_scope.cancel()
    return ended[0]


async def _follow(
    bridge: Bridge, queue: AttachmentQueue, caller: Caller, sender: Sender
) -> Event:
    backoff, place, is_anew = reconnect.Backoff(), SamePlace(), False
    while True:
        opened_at = bridge.clock.running()
        queue.stream_opened_at = None
        try:
            return await _follow_once(bridge, queue, caller, sender, is_anew)
        except _Full:
            continue
        except BridgeError as error:
            if isinstance(error, Refused) and failures.ends_lease(error):
                return _end_of(bridge, error)
            is_anew = error.code == _CURSOR_UNKNOWN
            queue.stream_trouble = error.code
            if place.is_stuck(queue.record.watermark, error):
                if place.is_news:
                    bridge.tell_person(stuck.TOLD, queue.record.name)
                await _go_past(bridge, queue, caller)
            was_open = queue.stream_opened_at is not None
            healthy_s = bridge.clock.running() - opened_at if was_open else 0.0
            floor = error.retry_after_s if isinstance(error, Unavailable) else None
            backoff, wait_s = reconnect.failed(
                backoff, healthy_s, bridge.clock.random_fraction(), floor
            )
            bridge.log.info("stream_ended", code=error.code, again_in_s=wait_s)
        if await _pause(bridge, queue, wait_s, floor or 0.0):
            backoff = reconnect.Backoff()


async def _pause(
    bridge: Bridge, queue: AttachmentQueue, wait_s: float, floor_s: float
) -> bool:
    """Wait, or until the computer woke, but not less than the server's floor.

    True when it woke.
    """
    until = bridge.clock.running() + floor_s
    with trio.move_on_after(wait_s):
        await queue.woke.wait()
        while (left_s := until - bridge.clock.running()) > 0:
            with trio.move_on_after(left_s):
                await queue.woke.wait()
        await trio.sleep(bridge.clock.random_fraction() * reconnect.BASE_S)
        return True
    return False


async def _go_past(bridge: Bridge, queue: AttachmentQueue, caller: Caller) -> None:
    try:
        await stuck.go_past(bridge, queue, caller)
    except BridgeError as error:
        bridge.log.warning("not_gone_past", code=error.code)


def _place(queue: AttachmentQueue, is_anew: bool) -> StreamPlace:
    """Where to start; `is_anew` leaves that to a server that lost it."""
    return StreamPlace(
        queue.record.attachment_id,
        cursor=None if is_anew else queue.record.watermark or None,
        has_messages=not queue.is_full,
        receipts_after=queue.record.receipt_cursor,
    )


async def _follow_once(
    bridge: Bridge,
    queue: AttachmentQueue,
    caller: Caller,
    sender: Sender,
    is_anew: bool,
) -> Event:
    """One connection; returns the end of the lease, raises why it ended else."""
    place = _place(queue, is_anew)
    events_in, events = trio.open_memory_channel[said.StreamEvent](PAGE)
    trouble: list[BridgeError | _Full] = []
    wakefulness = Wakefulness(bridge.clock)

    async def read() -> None:
        async with events_in:
            try:
                await read_stream(caller, place, events_in, bridge.log)
            except BridgeError as error:
                trouble.append(error)

    def end_at_waking() -> None:
        if wakefulness.was_lost():
            trouble.append(_slept())
            nursery.cancel_scope.cancel()

    over: Event | None = None
    async with trio.open_nursery() as nursery, events:
        nursery.start_soon(read)
        # No task of its own: a thousand streams would each pay for one.
        queue.on_waking = end_at_waking
        try:
            async for page in Together(events):
                # Race: bytes that lay in the kernel while the computer slept are
                # read first (test_what_was_sent_before_a_sleep_is_not_fresh_after_it).
                if wakefulness.was_lost():
                    raise _slept()
                over = await _hear(bridge, queue, sender, page)
                if over is not None:
                    break
                if queue.is_full is place.has_messages:
                    raise _Full
        except (BridgeError, _Full) as error:
            trouble.append(error)
        finally:
            queue.on_waking = None
        nursery.cancel_scope.cancel()
    if over is not None:
        return over
    raise trouble[0] if trouble else _ended()


async def _hear(
    bridge: Bridge,
    queue: AttachmentQueue,
    sender: Sender,
    page: Sequence[said.StreamEvent],
) -> Event | None:
    """Take in what came together; an Event when the lease is over."""
    event = page[0]
    queue.heard_server_at = page[-1].heard_at
    at = bridge.clock.wall()
    match event:
        case said.Opened():
            queue.stream_trouble = ""
            queue.stream_opened_at = event.heard_at
            sender.server_heard()
        case said.Arrived():
            messages = [each.message for each in page if isinstance(each, said.Arrived)]
            await receiving.receive_page(bridge, queue, messages, event.heard_at)
        case said.Alive(through=through):
            queue.releases = release.alive(queue.releases, through, event.heard_at)
            queue.native.stir()
            await receiving.look_for_room(bridge, queue)
        case said.Retracted(message_ids=ids, reason=reason):
            queue.releases = release.retracted(queue.releases, ids)
            async with queue.turn:
                await queue.take([(id_, Retracted(at, reason)) for id_ in ids])
        case said.ReceiptHeard(number=number):
            await _note_receipt(queue, number)
        case said.Skipped(sequence=sequence) if sequence:
            await receiving.pass_over(queue, sequence)
        case said.LeaseChanged(state=state):
            return _LEASE_OVER.get(state, ServerRevoked)(at)
        case _:
            pass
    return None


async def _note_receipt(queue: AttachmentQueue, number: int) -> None:
    async with queue.turn:
        if number > queue.record.receipt_cursor:
            record = replace(queue.record, receipt_cursor=number)
            await queue.commit([SaveAttachment(record)])


def _end_of(bridge: Bridge, error: Refused) -> Event:
    """What a server's final no means for the attachment."""
    at = bridge.clock.wall()
    if error.code == failures.HELD:
        return ServerHeld(at)
    if error.status == 410:
        state = str(error.details.get("state", "revoked"))
        return _LEASE_OVER.get(state, ServerRevoked)(at)
    if error.status in (401, 403, None):  # without a status our own proof is bad
        return TokenRefused(at)
    return ServerRevoked(at)


def _slept() -> Unavailable:
    return Unavailable(
        "computer_slept", "The computer slept; the stream is opened again."
    )


def _ended() -> Unavailable:
    return Unavailable("stream_ended", "The message server ended the stream.")
