"""One offer: chosen, saved, handed to a route, its outcome saved.

Promises that everything an offer says is on disk before a byte of it is handed
over, that one offer is out per attachment at a time, and that a definite "not
emitted" puts back exactly what the offer took.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import trio
from msgspec import Struct
from msgspec.structs import replace

from bridge.clock import Clock
from bridge.core import batch, guidance, naming, setup
from bridge.core.effects import (
    Save,
    SaveAttachment,
    SaveForeignReceipt,
    SaveOfferOutcome,
    SaveOfferRecord,
    SaveSubmission,
)
from bridge.core.events import Emitted, Event, NotEmitted, Taken, Unknown
from bridge.core.ids import OfferId, new_id
from bridge.core.records import (
    Attachment,
    Delivery,
    DeliveryState,
    Offer,
    OfferOutcome,
    Receipt,
)
from bridge.core.render import (
    Budget,
    OfferContent,
    make_nonce,
    parts_of,
    render_offer,
    shortened,
)
from bridge.core.routing import HOOK
from bridge.driver.queue import AttachmentQueue

# A net below the routes' own deadlines: who has not answered by then cannot say.
EMIT_DEADLINE_S = 6.0
Fits = Callable[[OfferContent, Sequence[Delivery], Sequence[Delivery]], bool]
Emission = Callable[[OfferId, str], Awaitable[OfferOutcome]]


class Occasion(Struct, frozen=True):
    """A moment at which one route could carry an offer.

    `roster` is who else is there, for the setup text; `program` the command as
    it can be pasted; `only_since` leaves out mail that arrived before this wall
    time (the loop guard's word), None leaves out nothing. `limit` is the most
    messages of one offer.
    """

    route: str
    budget: Budget
    program: str
    roster: tuple[setup.RosterEntry, ...] = ()
    only_since: float | None = None
    limit: int = batch.LIMIT

    @property
    def is_native(self) -> bool:
        """Any route but the hook starts turns by itself."""
        return self.route != HOOK


class Draft(Struct, frozen=True):
    """An offer that could be made now, and its text."""

    offer: Offer
    content: OfferContent
    text: str


def is_due(queue: AttachmentQueue, occasion: Occasion, at: float) -> bool:
    """Is there anything to say to this session that is reason enough for an offer?

    What only reminds of a message, or tells of a refusal, starts no turn by itself:
    it goes along natively, or comes at the next turn's end
    (test_an_unsure_message_starts_no_second_turn).
    """
    if not queue.is_live or queue.offer_out is not None:
        return False
    if _waiting(queue, occasion) or setup.is_due(queue.record):
        return True
    reminds = queue.to_be_named(at) or queue.refused_untold()
    return bool(reminds) and not occasion.is_native


async def make_offer(
    queue: AttachmentQueue, occasion: Occasion, clock: Clock, emit: Emission
) -> OfferOutcome | None:
    """Offer what is due; None when there was nothing to offer after all."""
    outcome = None
    with trio.CancelScope(shield=True):
        async with queue.turn:
            draft = draft_offer(queue, occasion, clock)
            if draft is not None:
                await _save(queue, draft)
        if draft is not None:
            outcome = await _emit(draft, emit)
            queue.unsaved_outcome = partial(_finish, queue, draft, outcome)
            await settle(queue, clock)
    return outcome


async def settle(queue: AttachmentQueue, clock: Clock) -> None:
    """Save the outcome of an offer that is over; without room it is kept for later.

    (test_an_outcome_that_found_no_room_is_saved_later)
    """
    if queue.unsaved_outcome is not None:
        async with queue.turn:
            await _settle(queue, clock)


async def _settle(queue: AttachmentQueue, clock: Clock) -> None:
    if queue.unsaved_outcome is None:  # somebody else did it while we waited
        return
    if not queue.is_forgotten:
        await queue.unsaved_outcome(clock.wall())
    queue.unsaved_outcome = None
    queue.offer_ends()


async def _emit(draft: Draft, emit: Emission) -> OfferOutcome:
    outcome = OfferOutcome.UNKNOWN
    with trio.move_on_after(EMIT_DEADLINE_S):
        outcome = await emit(draft.offer.offer_id, draft.text)
    return outcome


# ---- choosing ------------------------------------------------------------------


def _waiting(queue: AttachmentQueue, occasion: Occasion) -> list[Delivery]:
    """What may be shown now; a native route is never given what one refused."""
    since = occasion.only_since
    return [
        row
        for row in queue.releasable()
        if (since is None or row.changed_at >= since)
        and not (occasion.is_native and row.native_closed)
    ]


def draft_offer(
    queue: AttachmentQueue, occasion: Occasion, clock: Clock
) -> Draft | None:
    """The offer that would be made now; changes nothing."""
    at = clock.wall()
    if not is_due(queue, occasion, at):
        return None
    rows = _waiting(queue, occasion)
    fits = partial(_fits, occasion, clock)
    spoken = _fullest(_spoken(queue, occasion, at), rows, fits)
    chosen = batch.choose(rows, lambda *parts: fits(spoken, *parts), occasion.limit)
    content = _content(spoken, chosen.whole, chosen.notices, clock)
    return Draft(
        _offer(queue, occasion, content, clock), content, render_offer(content)
    )


def _spoken(queue: AttachmentQueue, occasion: Occasion, at: float) -> OfferContent:
    """All that we have to say ourselves."""
    record, program = queue.record, occasion.program
    setup_due, guidance_due = setup.is_due(record), guidance.is_due(record, at)
    return OfferContent(
        attachment=record,
        nonce="",
        unsure=queue.to_be_named(at),
        refused=tuple(queue.refused_untold()),
        setup=setup.text(record, occasion.roster, program) if setup_due else "",
        guidance=guidance.text(record, program) if guidance_due else "",
        program=program,
    )


def _fullest(
    spoken: OfferContent, rows: Sequence[Delivery], fits: Fits
) -> OfferContent:
    """As much of our own as leaves the first message whole; the rest stays due."""
    choices = [spoken]
    if spoken.setup or spoken.guidance:
        choices += [
            replace(spoken, guidance=""),
            replace(spoken, setup=""),
            replace(spoken, setup="", guidance=""),
        ]
    candidates = [
        shortened(choice, lambda content: fits(content, (), ())) for choice in choices
    ]
    if len(candidates) == 1:  # nothing to leave out, as with most offers
        return candidates[0]
    first = tuple(rows[:1])
    can_be_whole = fits(candidates[-1], first, ())
    for candidate in candidates:
        if fits(candidate, *((first, ()) if can_be_whole else ((), first))):
            return candidate
    return candidates[-1]


def _content(
    spoken: OfferContent,
    whole: Sequence[Delivery],
    notices: Sequence[Delivery],
    clock: Clock,
) -> OfferContent:
    messages = tuple(sorted((*whole, *notices), key=lambda row: row.sequence))
    too_large = frozenset(row.message_id for row in notices)
    content = replace(spoken, messages=messages, too_large=too_large)
    return replace(content, nonce=make_nonce(clock.random_bytes, content.texts()))


def _fits(
    occasion: Occasion,
    clock: Clock,
    spoken: OfferContent,
    whole: Sequence[Delivery],
    notices: Sequence[Delivery],
) -> bool:
    content = _content(spoken, whole, notices, clock)
    return occasion.budget.fits(render_offer(content))


def _offer(
    queue: AttachmentQueue, occasion: Occasion, content: OfferContent, clock: Clock
) -> Offer:
    record, at = queue.record, clock.wall()
    return Offer(
        offer_id=OfferId(new_id("offer", at, clock.random_bytes(10))),
        attachment_id=record.attachment_id,
        session_id=record.session_id,
        route=occasion.route,
        nonce=content.nonce,
        at=at,
        message_ids=tuple(row.message_id for row in content.messages),
        named_ids=tuple(row.message_id for row in content.unsure),
        setup_before=record.setup_at,
        setup_after=at if content.setup else record.setup_at,
        guidance_before=record.guidance_at,
        guidance_after=at if content.guidance else record.guidance_at,
    )


# ---- saving ----------------------------------------------------------------------


async def _save(queue: AttachmentQueue, draft: Draft) -> None:
    offer = draft.offer
    # Crash: everything below is one commit before the first byte is handed over
    # (test_a_daemon_killed_with_an_offer_out_repeats_nothing).
    named = [naming.name_once(row)[1][0] for row in draft.content.unsure]
    record = replace(
        queue.record, setup_at=offer.setup_after, guidance_at=offer.guidance_after
    )
    also: list[Save] = [SaveOfferRecord(offer)]
    also += [SaveAttachment(record)] if record != queue.record else []
    also += [effect for effect in named if isinstance(effect, Save)]
    also += [SaveSubmission(replace(row, told=True)) for row in draft.content.refused]
    await queue.take(
        [(id_, Taken(offer.at, offer.offer_id)) for id_ in offer.message_ids], also
    )
    queue.offer_begins(offer, draft.text, parts_of(draft.content))


async def _finish(
    queue: AttachmentQueue, draft: Draft, outcome: OfferOutcome, at: float
) -> None:
    offer = draft.offer
    also: list[Save] = [SaveOfferOutcome(offer.offer_id, outcome)]
    if outcome is OfferOutcome.NOT_EMITTED:
        also += _put_back(queue, draft)
    else:
        also += observations(queue, offer, outcome, at)
    event = _event(outcome, at, is_native=offer.route != HOOK)
    await queue.take([(id_, event) for id_ in offer.message_ids], also)
    if not setup.is_due(queue.record):
        queue.others = ()  # who else is there is told by the setup text alone


def _event(outcome: OfferOutcome, at: float, is_native: bool) -> Event:
    if outcome is OfferOutcome.EMITTED:
        return Emitted(at)
    if outcome is OfferOutcome.NOT_EMITTED:
        return NotEmitted(at, native=is_native)
    return Unknown(at)


def _put_back(queue: AttachmentQueue, draft: Draft) -> list[Save]:
    offer = draft.offer
    record = _restored(queue.record, offer)
    saves: list[Save] = [SaveAttachment(record)] if record != queue.record else []
    for message_id in offer.named_ids:
        row = queue.deliveries.get(message_id)
        if row is not None and row.named:
            saves += [e for e in naming.name_again(row)[1] if isinstance(e, Save)]
    told = (queue.submissions.get(row.submission_id) for row in draft.content.refused)
    saves += [SaveSubmission(replace(row, told=False)) for row in told if row]
    return saves


def _restored(record: Attachment, offer: Offer) -> Attachment:
    if record.setup_at == offer.setup_after:
        record = replace(record, setup_at=offer.setup_before)
    if record.guidance_at == offer.guidance_after:
        record = replace(record, guidance_at=offer.guidance_before)
    return record


def observations(
    queue: AttachmentQueue, offer: Offer, outcome: OfferOutcome, at: float
) -> list[Save]:
    """What the server may know apart from receipts: offered, or unsure."""
    seen = "offered" if outcome is OfferOutcome.EMITTED else "unsure"
    return [
        SaveForeignReceipt(Receipt(offer.attachment_id, message_id, seen, at))
        for message_id in offer.message_ids
        if queue.delivery(message_id).state
        in (DeliveryState.OFFERING, DeliveryState.RECALLED)
    ]
