"""What one attachment has for the server, as the sender asks for it.

Promises that a submission is on disk as in flight before it is written to the
server, and every answer before anybody hears of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio
from msgspec.structs import replace

from bridge.clock import Clock
from bridge.core import outbox, receipts
from bridge.core.effects import Save, SaveAttachment, Send
from bridge.core.events import Event, ReceiptRefused, ReceiptTaken, Sent
from bridge.core.records import Receipt, Submission, SubmissionState
from bridge.driver.queue import AttachmentQueue

# Nothing waits longer than this for its time: a clock that was set back is noticed.
_LOOK_AGAIN_S = 30.0


class Reports:
    """See the module; the upstream sender's Outbox for one queue."""

    def __init__(self, queue: AttachmentQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock

    async def wait_for_work(self) -> None:
        """See upstream.sender.Outbox."""
        await trio.lowlevel.checkpoint()
        while not self._has_work():
            self._queue.work = trio.Event()
            with trio.move_on_after(self._until_next_s()):
                await self._queue.work.wait()

    def _has_work(self) -> bool:
        return bool(
            self.due_receipts()
            or self.due_progress() is not None
            or self.due_submissions()
        )

    def _until_next_s(self) -> float:
        now = self._clock.wall()
        waits = [
            row.not_before - now
            for row in self._queue.submissions.values()
            if row.state is SubmissionState.WAITING
        ]
        return min([_LOOK_AGAIN_S, *(max(0.05, wait) for wait in waits)])

    def due_receipts(self) -> Sequence[Receipt]:
        """See upstream.sender.Outbox."""
        return receipts.due(self._queue.receipts.values())

    def due_progress(self) -> int | None:
        """See upstream.sender.Outbox."""
        # Race: what the end of a lease withheld was offered to nobody, and the
        # next session must get it (test_the_end_of_a_lease_is_no_progress).
        if not self._queue.is_live:
            return None
        through = self._queue.offered_through()
        return through if through > self._queue.reported_through else None

    def due_submissions(self) -> Sequence[Submission]:
        """See upstream.sender.Outbox."""
        rows = self._queue.submissions.values()
        return outbox.next_to_send(rows, self._clock.wall())

    async def begin(self, submission: Submission) -> Submission | None:
        """See upstream.sender.Outbox."""
        async with self._queue.turn:
            # Race: it has moved to the agent's next attachment
            # (test_a_submission_that_has_moved_is_not_begun).
            if submission.submission_id not in self._queue.submissions:
                return None
            effects = await self._queue.submit(
                submission.submission_id, Sent(self._clock.wall())
            )
        for effect in effects:
            if isinstance(effect, Send):
                return effect.submission
        return None

    async def answered(self, submission: Submission, event: Event) -> None:
        """See upstream.sender.Outbox."""
        async with self._queue.turn:
            if submission.submission_id in self._queue.submissions:
                await self._queue.submit(submission.submission_id, event)

    async def receipts_taken(self, rows: Sequence[Receipt]) -> None:
        """See upstream.sender.Outbox."""
        await self._settle(rows, ReceiptTaken(self._clock.wall()))

    async def receipts_refused(self, rows: Sequence[Receipt]) -> None:
        """See upstream.sender.Outbox."""
        await self._settle(rows, ReceiptRefused(self._clock.wall()))

    async def _settle(self, rows: Sequence[Receipt], event: Event) -> None:
        async with self._queue.turn:
            saves: list[Save] = []
            for row in rows:
                effects = receipts.handle(row, event)[1]
                saves += [each for each in effects if isinstance(each, Save)]
            await self._queue.commit(saves)

    async def progress_taken(self, offered_through: int) -> None:
        """See upstream.sender.Outbox."""
        self._queue.reported_through = offered_through
        async with self._queue.turn:
            record = self._queue.record
            if offered_through > record.offered_through and self._queue.is_live:
                known = replace(record, offered_through=offered_through)
                await self._queue.commit([SaveAttachment(known)])
