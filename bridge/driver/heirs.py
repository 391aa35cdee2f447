"""What an ended lease leaves: to be sent, or to be told of by the agent's next one.

Owns the one way in which rows go from one attachment to another. Promises that
what an agent was told is kept goes out under the lease that its name has now,
and that a message which may not have arrived is named once to whoever speaks for
the agent now; without this, nobody would ever hear of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from bridge.core import outbox
from bridge.core.effects import (
    Forget,
    Save,
    SaveDelivery,
    SaveForeignReceipt,
    SaveReceiptState,
)
from bridge.core.events import LeaseMoved
from bridge.core.ids import AttachmentId
from bridge.core.records import (
    AttachmentState,
    Delivery,
    DeliveryState,
    Receipt,
    ReceiptState,
    Submission,
)
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue

_OVER = (AttachmentState.REPLACED, AttachmentState.REVOKED)


class Estate(Struct, frozen=True):
    """What one attachment has for the server, as it was at one moment."""

    submissions: tuple[Submission, ...]
    receipts: tuple[Receipt, ...]


def estate_of(queue: AttachmentQueue) -> Estate:
    """All of it; the answered submissions too, so that their ids stay known."""
    return Estate(tuple(queue.submissions.values()), tuple(queue.unsent_receipts()))


def inherited(heir: AttachmentId, estates: Iterable[Estate], at: float) -> list[Save]:
    """The saves that make it the heir's, for one commit.

    Crash: so that nothing is in two places or in none
    (test_what_an_older_session_had_to_send_goes_on_in_the_next).
    """
    saves: list[Save] = []
    for estate in estates:
        for receipt in estate.receipts:
            here = replace(receipt, attachment_id=heir)
            there = replace(receipt, state=ReceiptState.REFUSED)
            saves += [SaveReceiptState(there), SaveForeignReceipt(here)]
        for row in estate.submissions:
            effects = outbox.handle(row, LeaseMoved(at, heir))[1]
            saves += [each for each in effects if isinstance(each, Save)]
    return saves


async def pass_on(bridge: Bridge, ended: AttachmentQueue) -> None:
    """Move what a lease that is over still has to the agent's live attachment.

    Nothing happens while there is none: an attach takes it then. What was being
    saved while the lease ended comes too late for the attach itself
    (test_what_is_said_while_the_name_moves_goes_out_under_the_new_lease).
    """
    if ended.record.state not in _OVER or not _leaves_something(ended):
        return
    for heir in bridge.roster.of_agent(ended.record.agent_id):
        if heir.is_live:
            await _move(ended, heir, bridge.clock.wall())
            return


def _leaves_something(ended: AttachmentQueue) -> bool:
    """Of many that are over few do: the others cost no look at the whole roster."""
    return bool(ended.submissions or ended.receipts or ended.deliveries)


async def _move(ended: AttachmentQueue, heir: AttachmentQueue, at: float) -> None:
    async with heir.turn:
        # Race: what an heir gets that is over, too, nobody would be told of
        # (test_nothing_is_moved_to_an_heir_that_ends_meanwhile).
        if not heir.is_live:
            return
        left = _left(ended, heir)
        rows = _unsure(ended, heir)
        saves = inherited(heir.record.attachment_id, [left], at)
        # Crash: gone from the one and in the other in one commit, or it would be
        # named twice or never (test_a_row_is_never_in_two_attachments).
        for row in rows:
            saves += [Forget(row.attachment_id, row.message_id), _of(heir, row)]
        await heir.commit(saves)
    ended.hand_over(left.submissions, left.receipts)
    for row in rows:
        ended.deliveries.forget(row.message_id)


def _left(ended: AttachmentQueue, heir: AttachmentQueue) -> Estate:
    """All but what the heir has, or what the person was told does not go out."""
    estate = estate_of(ended)
    return replace(
        estate,
        submissions=tuple(
            row
            for row in estate.submissions
            if row.submission_id not in heir.submissions
            and row.refusal_code != outbox.DETACHED
        ),
    )


def _unsure(ended: AttachmentQueue, heir: AttachmentQueue) -> list[Delivery]:
    """Another chat has nothing to do with what the one before was surely offered."""
    is_same_chat = ended.record.session_id == heir.record.session_id
    surely = (DeliveryState.OFFERED,) if is_same_chat else ()
    return [
        row
        for row in ended.in_state(DeliveryState.AMBIGUOUS, *surely)
        if not row.named and row.message_id not in heir.deliveries
    ]


def _of(heir: AttachmentQueue, row: Delivery) -> SaveDelivery:
    return SaveDelivery(
        replace(row, attachment_id=heir.record.attachment_id, offer_id=None)
    )
