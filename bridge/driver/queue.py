"""One attachment: its events in order, each committed before it shows.

Owns the attachment's record, its deliveries and what is held only in memory
(releases, the loop guard, the offer that is out). Promises that whoever holds
the turn sees a record that is on disk, and that a failed commit changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

import trio
from msgspec.structs import replace

from bridge.clock import Clock
from bridge.core import attachment as attachment_machine
from bridge.core import delivery as delivery_machine
from bridge.core import loopguard, naming, quota, release
from bridge.core import outbox as outbox_machine
from bridge.core.effects import (
    Effect,
    Forget,
    ForgetAttachment,
    ForgetSubmission,
    Save,
    SaveAttachment,
    SaveDelivery,
    SaveForeignReceipt,
    SaveMessage,
    SaveReceipt,
    SaveReceiptState,
    SaveSubmission,
)
from bridge.core.events import Event
from bridge.core.ids import MessageId, SubmissionId
from bridge.core.records import (
    Attachment,
    AttachmentState,
    Delivery,
    DeliveryState,
    Offer,
    Receipt,
    ReceiptState,
    Submission,
    SubmissionState,
)
from bridge.core.routing import Part
from bridge.core.setup import RosterEntry
from bridge.driver import ending
from bridge.driver.deliveries import Deliveries
from bridge.driver.native_side import NativeSide
from bridge.errors import Refused

Change = tuple[MessageId, Event]
_BY_HAND = ("admitted", "processed")
# Once the server has the receipt it does not send the message any more.
BY_HAND_KEPT = 2_000
_UNSURE = (DeliveryState.OFFERED, DeliveryState.AMBIGUOUS)
_WAITING = (DeliveryState.PENDING, DeliveryState.OFFERING, DeliveryState.RECALLED)

# What nobody waits for yet: a thousand attachments need no event of their own.
_OVER = trio.Event()
_OVER.set()


class Commits(Protocol):
    """The store, as a queue needs it."""

    async def commit(self, saves: Sequence[Save]) -> None:
        """All of them in one transaction, on disk when this returns."""
        ...


class AttachmentQueue:
    """See the module. Every method that changes anything needs `turn` held."""

    def __init__(
        self,
        record: Attachment,
        deliveries: Iterable[Delivery],
        receipts: Iterable[Receipt],
        submissions: Iterable[Submission],
        journal: Commits,
        clock: Clock,
    ) -> None:
        self.record = record
        self.deliveries = Deliveries(deliveries)
        self.receipts = {_key(row): row for row in receipts}
        self.submissions = {row.submission_id: row for row in submissions}
        self.turn = trio.Lock()
        self.offer_out: Offer | None = None
        self.texts_out: tuple[str, ...] = ()
        self.unsaved_outcome: Callable[[float], Awaitable[None]] | None = None
        self.turn_end: int | None = None
        self.turn_end_over = _OVER
        self.others: tuple[RosterEntry, ...] = ()
        self.releases = release.Releases()
        self.guard = loopguard.Guard()
        self.counted: dict[str, int] = {}
        self.last_contact_at = 0.0
        self.hooks_heard = False
        self.is_idle = False
        self.noticed: frozenset[MessageId] = frozenset()
        self.stream: trio.CancelScope | None = None
        self.stream_opened_at: float | None = None
        self.heard_server_at: float | None = None
        self.reported_through = record.offered_through
        # Crash: such an id may still be on its way here
        # (test_an_id_acknowledged_by_hand_is_remembered_over_a_start).
        self.acknowledged_by_hand = {
            row.message_id: None
            for row in self.receipts.values()
            if row.message_id not in self.deliveries
        }
        self.on_move: Callable[[], None] | None = None
        self.on_waking: Callable[[], None] | None = None
        self.told = ""
        self.stream_trouble = ""
        self.lacks_bytes: int | None = None
        self.woke = trio.Event()
        self.work = trio.Event()
        self.changed = trio.Event()
        self.native = NativeSide()
        self._offer_over = _OVER
        self._journal = journal
        self._clock = clock

    # ---- changing --------------------------------------------------------------

    async def take(
        self, changes: Sequence[Change], also: Sequence[Save] = ()
    ) -> list[Effect]:
        """Run delivery events in order, commit, show; return the other effects.

        `also` is committed in the same transaction, after the machines' saves.
        """
        after: dict[MessageId, Delivery] = {}
        effects: list[Effect] = []
        for message_id, event in changes:
            row = after.get(message_id) or self.delivery(message_id)
            after[message_id], asked = delivery_machine.handle(row, event)
            effects += asked
        saves = [effect for effect in effects if isinstance(effect, Save)]
        await self.commit([*saves, *also])
        return [effect for effect in effects if not isinstance(effect, Save)]

    async def step(self, event: Event) -> list[Effect]:
        """Run one attachment event, commit, show; return the other effects.

        ForgetAttachment is left to the caller, in its place: the tokens go first.
        """
        _, effects = attachment_machine.handle(self.record, event)
        # Crash: the end of a lease is whole or not at all
        # (test_the_end_of_a_lease_is_one_commit).
        saves: list[Save] = []
        for each in effects:
            if isinstance(each, SaveAttachment):
                saves.append(each)
            rows, sent = self.deliveries.values(), self.submissions.values()
            saves += ending.saves_of(each, event.at, rows, sent)
        await self.commit(saves)
        return [each for each in effects if not isinstance(each, SaveAttachment)]

    async def submit(self, submission_id: SubmissionId, event: Event) -> list[Effect]:
        """Run one submission event, commit, show; return the other effects."""
        row = self.submissions[submission_id]
        _, effects = outbox_machine.handle(row, event)
        await self.commit([effect for effect in effects if isinstance(effect, Save)])
        return [effect for effect in effects if not isinstance(effect, Save)]

    async def commit(self, saves: Sequence[Save]) -> None:
        """On disk, then in memory; a commit that began is never abandoned.

        Raises Refused once the attachment was forgotten: its rows have no place.
        """
        if not saves:
            return
        if self.is_forgotten:
            raise _over()
        # Race: a caller that gives up in the middle must not leave a row that is
        # on disk and not in memory (test_a_cancelled_offer_still_shows_its_commit).
        with trio.CancelScope(shield=True):
            await self._journal.commit(saves)
            for save in saves:
                self._remember(save)

    def _remember(self, save: Save) -> None:
        if isinstance(save, SaveAttachment):
            before, self.record = self.record, save.attachment
            has_moved = save.attachment.process_key != before.process_key
            if save.attachment.state is not before.state:
                self.native.stir()
            if has_moved and self.on_move is not None:
                self.on_move()
        if isinstance(save, ForgetAttachment):
            self.record = replace(self.record, state=AttachmentState.DETACHED)
        if isinstance(save, SaveReceipt | SaveForeignReceipt):
            self.receipts[_key(save.receipt)] = save.receipt
            self.wake()
        if isinstance(save, SaveForeignReceipt):
            self._expect_no_more(save.receipt)
        if isinstance(save, SaveReceiptState):
            self.receipts.pop(_key(save.receipt), None)
        if isinstance(save, SaveDelivery):
            self.deliveries.put(save.delivery)
        if isinstance(save, SaveMessage):
            highest = max(self.record.watermark, save.delivery.sequence)
            self.record = replace(self.record, watermark=highest)
        if isinstance(save, SaveSubmission):
            self.submissions[save.submission.submission_id] = save.submission
            self.submissions_changed()
        if isinstance(save, ForgetSubmission):
            self.submissions.pop(save.submission_id, None)
        if isinstance(save, Forget):
            self.deliveries.forget(save.message_id)

    def _expect_no_more(self, receipt: Receipt) -> None:
        # Race: what another session was offered may be on its way here while the
        # server is told of it (test_what_an_heir_tells_of_is_not_taken_by_it).
        is_inherited = receipt.message_id not in self.deliveries
        if receipt.delivery not in _BY_HAND and not is_inherited:
            return
        self.acknowledged_by_hand[receipt.message_id] = None
        while len(self.acknowledged_by_hand) > BY_HAND_KEPT + len(self.receipts):
            del self.acknowledged_by_hand[next(iter(self.acknowledged_by_hand))]

    # ---- the offer that is out ---------------------------------------------------

    def offer_begins(
        self, offer: Offer, text: str, parts: tuple[Part, ...] = ()
    ) -> None:
        """It is saved and is being handed over."""
        self.offer_out = offer
        self.texts_out = (text,)
        self.native.parts = parts
        self._offer_over = trio.Event()

    def offer_ends(self) -> None:
        """Its outcome is saved, or nobody can be told of it any more."""
        self.offer_out = None
        self.texts_out = ()
        self.native.parts = ()
        self._offer_over.set()
        self.native.stir()

    async def wait_for_offer(self) -> None:
        """Return when no offer is out."""
        if self.offer_out is not None:
            await self._offer_over.wait()

    # ---- the turn's end that is being answered -----------------------------------

    async def begin_turn_end(self, mark: int) -> bool:
        """Wait for the one before; False when `mark` is that very one, told twice."""
        while self.turn_end is not None:
            if self.turn_end == mark:
                return False
            await self.turn_end_over.wait()
        self.turn_end, self.turn_end_over = mark, trio.Event()
        return True

    def finish_turn_end(self) -> None:
        """It is answered, and what came of it is saved."""
        self.turn_end = None
        self.turn_end_over.set()

    # ---- small news --------------------------------------------------------------

    def count(self, what: str) -> None:
        """Something late or repeated happened once more."""
        self.counted[what] = self.counted.get(what, 0) + 1

    def wake(self) -> None:
        """There may be something to send."""
        self.work.set()

    def computer_woke(self) -> None:
        """It slept: whoever waits for the server starts anew."""
        self.woke.set()
        self.woke = trio.Event()
        if self.on_waking is not None:
            self.on_waking()

    def close_stream(self) -> None:
        """End the tasks that talk to the server for it, if they run."""
        if self.stream is not None:
            self.stream.cancel()
            self.stream = None

    def hand_over(
        self, submissions: Iterable[Submission], receipts: Iterable[Receipt]
    ) -> None:
        """These are saved as another attachment's; what came later is still here."""
        for row in submissions:
            self.submissions.pop(row.submission_id, None)
        for receipt in receipts:
            self.receipts.pop(_key(receipt), None)

    def submissions_changed(self) -> None:
        """Whoever waits for a submission looks again; the sender too."""
        self.changed.set()
        self.changed = trio.Event()
        self.wake()

    # ---- looking ---------------------------------------------------------------

    def delivery(self, message_id: MessageId) -> Delivery:
        """The row, or a fresh one that nothing is known of."""
        known = self.deliveries.get(message_id)
        return known or Delivery(self.record.attachment_id, message_id)

    def in_state(self, *states: DeliveryState) -> list[Delivery]:
        """Rows in these states, oldest first."""
        return self.deliveries.in_state(*states)

    def to_be_named(self, at: float) -> tuple[Delivery, ...]:
        """What the next offer names as perhaps not arrived."""
        return naming.to_be_named(self.in_state(*_UNSURE), at)

    def offered_through(self) -> int:
        """The highest sequence with nothing waiting at or below it."""
        waiting = self.deliveries.first_in_state(*_WAITING)
        return self.record.watermark if waiting is None else waiting - 1

    def releasable(self) -> list[Delivery]:
        """Pending rows that the server still stands by, oldest first."""
        now = self._clock.running()
        return [
            row
            for row in self.in_state(DeliveryState.PENDING)
            if self.releases.is_fresh(row.message_id, row.sequence, now)
        ]

    def unsent_receipts(self) -> list[Receipt]:
        """What the server has not been told yet, in order."""
        rows = self.receipts.values()
        return [row for row in rows if row.state is ReceiptState.UNSENT]

    def refused_untold(self) -> list[Submission]:
        """Refused submissions that the agent has not been told of."""
        return [
            row
            for row in self.submissions.values()
            if row.state is SubmissionState.REFUSED and not row.told
        ]

    def usage(self) -> quota.Usage:
        """Rows, and UTF-8 bytes of the bodies that are kept."""
        return quota.Usage(len(self.deliveries), self.deliveries.body_bytes)

    @property
    def is_full(self) -> bool:
        """A message found no room, so the server keeps what comes."""
        return self.lacks_bytes is not None

    @property
    def is_forgotten(self) -> bool:
        """Detached, and no row of it is left."""
        return self.record.state is AttachmentState.DETACHED

    @property
    def is_present(self) -> bool:
        """Attached or held: its session is there."""
        return self.record.state in (AttachmentState.ATTACHED, AttachmentState.HELD)

    def check_present(self) -> None:
        """Raises Refused when the session has ended while its agent's call waited.

        Race: what an ended lease is told is told to nobody, so nothing may be called
        kept (test_what_an_agent_says_while_it_is_detached_is_refused).
        """
        if not self.is_present:
            raise _over()

    @property
    def is_live(self) -> bool:
        """Attached: its stream may run and its session may be offered mail."""
        return self.record.state is AttachmentState.ATTACHED


def _key(receipt: Receipt) -> tuple[MessageId, str]:
    return receipt.message_id, receipt.delivery


def _over() -> Refused:
    return Refused(
        "detached",
        "The session was detached or ended meanwhile, so nothing was done.",
        "Attach it again.",
    )
