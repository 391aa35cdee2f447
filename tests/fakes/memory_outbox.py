"""An outbox in memory, on the core's own machines."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from bridge.core import outbox, receipts
from bridge.core.events import Event, ReceiptRefused, ReceiptTaken, Sent
from bridge.core.ids import SubmissionId
from bridge.core.records import Receipt, Submission, SubmissionState
from bridge.errors import BridgeError
from tests.fakes.clock import FakeClock


class MemoryOutbox:
    """See upstream.sender.Outbox. `failures` are raised by the next saves."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.rows: dict[SubmissionId, Submission] = {}
        self.receipts: list[Receipt] = []
        self.progress: int | None = None
        self.told: list[str] = []
        self.failures: dict[str, list[BridgeError]] = {"begin": [], "answered": []}
        self.withdrawn: set[SubmissionId] = set()
        self.begun = 0
        self.work = trio.Event()

    def add(self, *added: Submission | Receipt) -> None:
        """There is something to send."""
        for each in added:
            if isinstance(each, Receipt):
                self.receipts.append(each)
            else:
                self.rows[each.submission_id] = each
        self.work.set()

    def states(self) -> list[str]:
        """The rows' states, in order of number."""
        rows = sorted(self.rows.values(), key=lambda row: row.number)
        return [row.state.value for row in rows]

    async def wait_for_work(self) -> None:
        await trio.lowlevel.checkpoint()
        while not (self.due_receipts() or self.due_submissions() or self.progress):
            self.work = trio.Event()
            with trio.move_on_after(1.0):
                await self.work.wait()

    def due_receipts(self) -> Sequence[Receipt]:
        return receipts.due(self.receipts)

    def due_progress(self) -> int | None:
        return self.progress

    def due_submissions(self) -> Sequence[Submission]:
        return outbox.next_to_send(self.rows.values(), self.clock.wall())

    async def begin(self, submission: Submission) -> Submission | None:
        self.begun += 1
        await self._save("begin")
        if submission.submission_id in self.withdrawn:
            return None
        self._step(submission.submission_id, Sent(self.clock.wall()))
        return self.rows[submission.submission_id]

    async def answered(self, submission: Submission, event: Event) -> None:
        await self._save("answered")
        self.told.append(f"{submission.submission_id} {type(event).__name__}")
        self._step(submission.submission_id, event)

    async def receipts_taken(self, rows: Sequence[Receipt]) -> None:
        self._settle(rows, ReceiptTaken(self.clock.wall()))

    async def receipts_refused(self, rows: Sequence[Receipt]) -> None:
        self._settle(rows, ReceiptRefused(self.clock.wall()))

    async def progress_taken(self, offered_through: int) -> None:
        self.told.append(f"progress {offered_through}")
        self.progress = None

    def in_flight(self) -> int:
        """How many are under way now."""
        rows = self.rows.values()
        return sum(row.state is SubmissionState.IN_FLIGHT for row in rows)

    async def _save(self, what: str) -> None:
        await trio.lowlevel.checkpoint()
        if self.failures[what]:
            raise self.failures[what].pop(0)

    def _step(self, submission_id: SubmissionId, event: Event) -> None:
        self.rows[submission_id] = outbox.handle(self.rows[submission_id], event)[0]

    def _settle(self, rows: Sequence[Receipt], event: Event) -> None:
        for row in rows:
            place = self.receipts.index(row)
            self.receipts[place] = receipts.handle(row, event)[0]
