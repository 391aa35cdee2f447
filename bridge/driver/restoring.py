"""A start and the passing of time: what was kept, taken up again or let go.

Promises that an offer which was out when the daemon died is unsure and never
repeated, that only what was attached and is verified is attached again, and
that old rows go by elapsed time, not by a clock that was set.
"""

from __future__ import annotations

from collections import defaultdict

import trio

from bridge.core import outbox, quota
from bridge.core.effects import (
    ForgetAttachment,
    Save,
    SaveForeignReceipt,
    SaveOfferOutcome,
)
from bridge.core.events import (
    Aged,
    BridgeStarted,
    BridgeStopped,
    Restarted,
    SubmissionRestarted,
)
from bridge.core.ids import AttachmentId, OfferId
from bridge.core.records import (
    Attachment,
    AttachmentState,
    DeliveryState,
    OfferOutcome,
    Receipt,
    Submission,
)
from bridge.driver import (
    attaching,
    heirs,
    identity,
    natives,
    offering,
    stepping,
    table,
)
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError, StorageBroken
from bridge.providers import process

SWEEP_EVERY_S = 3600.0
CHECKPOINT_EVERY_S = 60.0
_OUT = (DeliveryState.OFFERING, DeliveryState.RECALLED)


async def restore(bridge: Bridge) -> None:
    """Everything the journal holds, as a start finds it; streams open at the end."""
    receipts: defaultdict[AttachmentId, list[Receipt]] = defaultdict(list)
    for row in await bridge.journal.unsent_receipts():
        receipts[row.attachment_id].append(row)
    bridge.last_number = await bridge.journal.last_submission_number()
    for record in await bridge.journal.attachments():
        own = receipts[record.attachment_id]
        bridge.roster.add(await _queue(bridge, record, own))
    for offer in await bridge.journal.offers_out():
        await _end_offer(bridge, offer.attachment_id, offer.offer_id)
    for queue in bridge.roster:
        await _restart_rows(bridge, queue)
    for queue in bridge.roster:
        await _restart(bridge, queue)


async def _queue(
    bridge: Bridge, record: Attachment, receipts: list[Receipt]
) -> AttachmentQueue:
    attachment_id = record.attachment_id
    return AttachmentQueue(
        record,
        await bridge.journal.deliveries(attachment_id),
        receipts,
        await bridge.journal.submissions(attachment_id),
        bridge,
        bridge.clock,
    )


async def _end_offer(
    bridge: Bridge, attachment_id: AttachmentId, offer_id: OfferId
) -> None:
    """Crash: it was saved and perhaps emitted; nobody can say (fault rows 2 and 3)."""
    queue = bridge.roster.get(attachment_id)
    if queue is None:
        return
    at = bridge.clock.wall()
    rows = [row for row in queue.in_state(*_OUT) if row.offer_id == offer_id]
    also: list[Save] = [
        SaveForeignReceipt(Receipt(attachment_id, row.message_id, "unsure", at))
        for row in rows
    ]
    also.append(SaveOfferOutcome(offer_id, OfferOutcome.UNKNOWN))
    await queue.take([(row.message_id, Restarted(at)) for row in rows], also)


async def _restart_rows(bridge: Bridge, queue: AttachmentQueue) -> None:
    at = bridge.clock.wall()
    await queue.take([(row.message_id, Restarted(at)) for row in queue.in_state(*_OUT)])
    for submission_id in list(queue.submissions):
        await queue.submit(submission_id, SubmissionRestarted(at))


async def _restart(bridge: Bridge, queue: AttachmentQueue) -> None:
    record = queue.record
    verified = identity.still_there(
        record.provider, record.session_id, record.process_key
    )
    queue.hooks_heard = verified
    await stepping.step(bridge, queue, BridgeStarted(bridge.clock.wall(), verified))
    if queue.is_present:
        attaching.watch_process(bridge, record.process_key)
        bridge.start(natives.look, bridge, queue)


async def pause(bridge: Bridge) -> None:
    """The bridge stops: streams close, identities and waiting mail stay."""
    for queue in bridge.roster:
        await stepping.step(bridge, queue, BridgeStopped(bridge.clock.wall()))


async def keep_tidy(bridge: Bridge) -> None:
    """Until cancelled: retire what is old, empty the log of erased bodies."""
    started_wall, started = bridge.clock.wall(), bridge.clock.running()
    next_sweep = 0.0
    while True:
        passed = bridge.clock.running() - started
        try:
            for queue in bridge.roster:
                await offering.settle(queue, bridge.clock)
                await heirs.pass_on(bridge, queue)
            if passed >= next_sweep:
                # A clock that was set forward must retire nothing early.
                await _sweep(bridge, min(bridge.clock.wall(), started_wall + passed))
                next_sweep = passed + SWEEP_EVERY_S
            await bridge.tidy_journal()
        except StorageBroken as error:
            bridge.give_up(error)
        except BridgeError as error:
            bridge.log.warning("not_tidied", code=error.code)
        await trio.sleep(CHECKPOINT_EVERY_S)


async def _sweep(bridge: Bridge, at: float) -> None:
    for key in {*bridge.heard, *(key for key, _ in bridge.hooked)}:
        if not process.is_alive(key):
            bridge.forget_process(key)
    for queue in bridge.roster:
        async with queue.turn:
            rows = quota.retire_by_age(queue.deliveries.values(), at)
            await queue.take([(row.message_id, Aged(at)) for row in rows])
            old = outbox.to_forget(queue.submissions.values(), at)
            await queue.commit([each for each in old if isinstance(each, Save)])
            is_done = _is_done(queue, at) and not table.is_shown(bridge, queue)
            if is_done:
                await queue.commit([ForgetAttachment(queue.record.attachment_id)])
        if is_done:
            bridge.roster.remove(queue)


def _is_done(queue: AttachmentQueue, at: float) -> bool:
    """Its lease is over and nothing of it can be of use to anybody.

    What an agent was told is kept goes out when its name is attached again
    (test_what_waits_to_be_sent_outlives_its_lease).
    """
    if queue.record.state not in (AttachmentState.REPLACED, AttachmentState.REVOKED):
        return False
    signs = queue.unsent_receipts()
    return not (
        queue.deliveries
        or any(_is_needed(row, at) for row in queue.submissions.values())
        or any(at - sign.at <= quota.RETENTION_S for sign in signs)
    )


def _is_needed(row: Submission, at: float) -> bool:
    """It goes out yet, or its id must still be known to mean this message.

    (test_a_submission_id_is_known_after_its_lease_has_ended)
    """
    return row.state not in outbox.ANSWERED or at - row.created_at <= outbox.KEPT_FOR_S
