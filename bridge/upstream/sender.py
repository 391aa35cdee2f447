"""What one attachment has for the server: receipts, progress and submissions.

Promises that receipts go out in order and before anything else; that each lane
has one submission under way, with the same submission id every time; that a
refused one stops nothing behind it; and that a server which is not there is
asked with full jitter, never in a storm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import trio

from bridge.core import reconnect
from bridge.core.events import (
    Accepted,
    Event,
    LeaseRefused,
    RateLimited,
    ReplyLost,
    SubmissionRefused,
)
from bridge.core.ids import AttachmentId, InboxId, MessageId
from bridge.core.records import Receipt, Submission
from bridge.errors import (
    BridgeError,
    Invalid,
    Refused,
    StorageBroken,
    StorageFull,
    Unavailable,
    Unknown,
)
from bridge.upstream import api, failures
from bridge.upstream.api import Caller

# Lanes of one attachment under way at once; the calls of all share one pool.
LANES_AT_ONCE = 4

# A commit takes milliseconds; one that hangs may not hold up the end of a lease.
SAVE_DEADLINE_S = 5.0
# A server that says "again at once" still gets a moment.
SHORTEST_WAIT_S = 1.0

# The lease itself was refused: its token, its right, or its life.
_LEASE_STATUS = (401, 403, 410)
# What a proxy says while the server behind it is changed.
_PLACE_STATUS = (403, 404, 405, 409, 410)
# One conversation is too busy; the others are not.
_CONVERSATION_RATE = "conversation_rate"
# The server read it and says that it breaks a rule.
_RULE_STATUS = (400, 413, 422)


# What a later try may find otherwise, and what ends the lease.
_PASSING = (Refused, Unavailable, Unknown, Invalid, StorageFull)


class Outbox(Protocol):
    """What the sender asks, and tells; one attachment's."""

    async def wait_for_work(self) -> None:
        """Return when something below may have changed, or its time has come.

        Work that was there before must return at once.
        """
        ...

    def due_receipts(self) -> Sequence[Receipt]:
        """Unsent receipts, in the order in which they must go out."""
        ...

    def due_progress(self) -> int | None:
        """The offered-through to report, None when the server knows it."""
        ...

    def due_submissions(self) -> Sequence[Submission]:
        """The head of each lane that may go out now."""
        ...

    async def begin(self, submission: Submission) -> Submission | None:
        """Its turn came: return its row once it is saved as in flight.

        None when it is not to be sent any more.
        """
        ...

    async def answered(self, submission: Submission, event: Event) -> None:
        """What came of it: Accepted, SubmissionRefused, LeaseRefused,
        RateLimited (until a time) or ReplyLost (again, with the same id).
        """
        ...

    async def receipts_taken(self, receipts: Sequence[Receipt]) -> None:
        """The server has these."""
        ...

    async def receipts_refused(self, receipts: Sequence[Receipt]) -> None:
        """The server will never take these."""
        ...

    async def progress_taken(self, offered_through: int) -> None:
        """The server knows this much."""
        ...


class _Try:
    """One head in one pass, and what stopped the pass at it."""

    def __init__(self, head: Submission) -> None:
        self.head = head
        self.has_begun = False
        self.trouble: BridgeError | None = None


class Sender:
    """Drains one attachment's outbox; run it for as long as its lease lives."""

    def __init__(
        self, caller: Caller, attachment_id: AttachmentId, outbox: Outbox
    ) -> None:
        self._caller = caller
        self._attachment_id = attachment_id
        self._outbox = outbox
        self._backoff = reconnect.Backoff()
        self._heard = trio.Event()
        self._unsaved: list[tuple[Submission, Event]] = []

    def server_heard(self) -> None:
        """The server is there (its stream opened): do not wait any longer."""
        self._heard.set()

    async def run(self) -> Refused:
        """Send what is due until the server refuses the lease; return its no.

        What was under way then has had its LeaseRefused (or, held, its ReplyLost);
        receipts stay unsent. Raises StorageBroken.
        """
        while True:
            await self._outbox.wait_for_work()
            while (trouble := await self._drained()) is not None:
                if isinstance(trouble, Refused) and failures.ends_lease(trouble):
                    return trouble
                await self._pause(trouble)

    async def _drained(self) -> BridgeError | None:
        """One pass over all that is due; what stopped it, or None."""
        self._heard = trio.Event()
        try:
            await self._save_answers()
            await self._send_receipts()
            await self._report_progress()
            await self._send_heads()
        except _PASSING as error:
            return error
        self._backoff = reconnect.Backoff()
        return None

    async def _pause(self, trouble: BridgeError) -> None:
        floor = trouble.retry_after_s if isinstance(trouble, Unavailable) else None
        fraction = self._caller.clock.random_fraction()
        self._backoff, wait_s = reconnect.failed(self._backoff, 0.0, fraction, floor)
        with trio.move_on_after(wait_s):
            if floor is None:
                await self._heard.wait()
            else:
                await trio.sleep_forever()  # the server's own floor is obeyed

    async def _report_progress(self) -> None:
        progress = self._outbox.due_progress()
        if progress is not None:
            known = progress
            try:
                known = await api.report_progress(
                    self._caller, self._attachment_id, progress
                )
            except Refused as error:
                if error.status not in _RULE_STATUS:
                    raise
            # One that the server will never take is not told again: it must not
            # hold up what agents say.
            await self._outbox.progress_taken(max(known, progress))

    # ---- receipts ----------------------------------------------------------------

    async def _send_receipts(self) -> None:
        due = list(self._outbox.due_receipts())
        while due:
            batch, due = due[: api.RECEIPTS_LIMIT], due[api.RECEIPTS_LIMIT :]
            await self._send_batch(batch)

    async def _send_batch(self, batch: Sequence[Receipt]) -> None:
        try:
            taken = await api.send_receipts(self._caller, self._attachment_id, batch)
        except Refused as error:
            if error.status not in _RULE_STATUS:
                raise
            await self._send_singly(batch)
            return
        unknown = set(taken.unknown)
        await self._settle([row for row in batch if row.message_id not in unknown])
        await self._refuse([row for row in batch if row.message_id in unknown])

    async def _send_singly(self, batch: Sequence[Receipt]) -> None:
        """One of them breaks a rule: it must not stop the others."""
        if len(batch) == 1:
            await self._refuse(batch)
            return
        for receipt in batch:
            await self._send_batch([receipt])

    async def _settle(self, receipts: Sequence[Receipt]) -> None:
        if receipts:
            await self._outbox.receipts_taken(receipts)

    async def _refuse(self, receipts: Sequence[Receipt]) -> None:
        if receipts:
            await self._outbox.receipts_refused(receipts)

    # ---- submissions -------------------------------------------------------------

    async def _send_heads(self) -> None:
        has_begun = True
        while has_begun:
            heads = list(self._outbox.due_submissions())[:LANES_AT_ONCE]
            tries = [_Try(head) for head in heads]
            async with trio.open_nursery() as nursery:
                for each in tries:
                    nursery.start_soon(self._send_one, each)
            _raise_first([each.trouble for each in tries if each.trouble])
            has_begun = any(each.has_begun for each in tries)
            if tries and not has_begun:
                await trio.sleep(SHORTEST_WAIT_S)  # offered, and then withdrawn

    async def _send_one(self, this: _Try) -> None:
        try:
            # Race: a row that is saved as in flight must get an answer, or it
            # would block its lane (test_a_cancelled_send_is_answered_as_lost).
            with trio.move_on_after(SAVE_DEADLINE_S, shield=True):
                submission = await self._outbox.begin(this.head)
                this.has_begun = submission is not None
        except BridgeError as error:
            this.trouble = error
            return
        if not this.has_begun or submission is None:
            return
        event: Event = ReplyLost(self._caller.clock.wall())
        try:
            event = await self._ask(submission)
        except BridgeError as error:
            event = self._event_of(error)
            this.trouble = error if _stops_others(error, event) else None
        finally:
            this.trouble = await self._save_answer(submission, event) or this.trouble

    async def _save_answer(
        self, submission: Submission, event: Event
    ) -> BridgeError | None:
        """Hand it to the outbox; what cannot be saved now is kept for later."""
        try:
            with trio.move_on_after(SAVE_DEADLINE_S, shield=True):
                await self._outbox.answered(submission, event)
                return None
            trouble: BridgeError = _not_saved()
        except BridgeError as error:
            trouble = error
        self._unsaved.append((submission, event))
        return trouble

    async def _save_answers(self) -> None:
        unsaved, self._unsaved = self._unsaved, []
        troubles = [await self._save_answer(*each) for each in unsaved]
        _raise_first([trouble for trouble in troubles if trouble is not None])

    async def _ask(self, submission: Submission) -> Event:
        result = await api.send(
            self._caller,
            self._attachment_id,
            submission.body or "",
            submission.submission_id,
            submission.target,
            submission.inbox_id,
        )
        return Accepted(
            self._caller.clock.wall(),
            MessageId(result.message_id),
            InboxId(result.inbox_id),
            result.conversation_id,
            result.sequence,
        )

    def _event_of(self, error: BridgeError) -> Event:
        at = self._caller.clock.wall()
        match error:
            case Refused(status=status) if status in _PLACE_STATUS and not (
                failures.is_servers_word(error)
            ):
                return ReplyLost(at)
            case Refused(status=status) if status in _LEASE_STATUS:
                return LeaseRefused(at, self._attachment_id)
            # Not this call's fault: what it wanted to say waits for a person's yes.
            case Refused(code=failures.HELD):
                return ReplyLost(at)
            case Refused():
                return SubmissionRefused(at, error.code, error.message)
            case Unavailable(retry_after_s=float(floor)):
                return RateLimited(at, at + max(floor, SHORTEST_WAIT_S))
            case _:
                return ReplyLost(at)


def _stops_others(error: BridgeError, event: Event) -> bool:
    """False when the trouble is this submission's or this conversation's own."""
    return not (
        isinstance(event, SubmissionRefused) or error.code == _CONVERSATION_RATE
    )


def _raise_first(troubles: Sequence[BridgeError]) -> None:
    """Raise the gravest: broken storage, then a refused lease, then the rest."""
    for kind in (StorageBroken, Refused, BridgeError):
        for trouble in troubles:
            if isinstance(trouble, kind):
                raise trouble


def _not_saved() -> Unavailable:
    return Unavailable(
        "answer_not_saved",
        "The server's answer could not be saved in time; it is saved later.",
    )
