"""What ends a sender, and what it leaves behind: leases, cancellation, storage."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from bridge.core.ids import SubmissionId
from bridge.core.records import ReceiptState
from bridge.errors import StorageBroken
from tests.fakes.memory_outbox import MemoryOutbox
from tests.fakes.scripted_server import (
    HANG,
    Answer,
    refused,
    said,
)
from tests.upstream.sending import (
    ACCEPTED,
    FULL,
    Place,
    receipt,
    submission,
)

# ---- the end of the lease ----------------------------------------------------


@pytest.mark.parametrize("status", [401, 403, 410])
async def test_a_refused_lease_ends_the_sender(
    place: Place, autojump_clock: MockClock, status: int
) -> None:
    place.outbox.add(submission(1), submission(2))
    async with place.sending(refused(status, "gone", state="replaced")) as sending:
        pass

    assert sending.end is not None
    assert sending.end.status == status
    assert place.outbox.told == ["sub-1 LeaseRefused"]
    assert place.outbox.states() == ["orphaned", "queued"]


async def test_a_held_lease_keeps_its_submissions(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(submission(1))
    async with place.sending(refused(409, "held")) as sending:
        pass

    assert sending.end is not None
    assert sending.end.code == "held"
    assert place.outbox.states() == ["uncertain"]


async def test_a_lease_that_is_over_ends_the_sender_at_its_receipts(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(receipt(1))
    async with place.sending(refused(410, "gone")) as sending:
        pass

    assert sending.end is not None
    assert place.outbox.receipts[0].state is ReceiptState.UNSENT


async def test_a_cancelled_send_is_answered_as_lost(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(submission(1))
    async with place.sending(Answer(200, {}, [HANG])):
        assert place.outbox.states() == ["in_flight"]

    assert place.outbox.states() == ["uncertain"]


# ---- storage in trouble ------------------------------------------------------


async def test_a_submission_that_cannot_be_saved_as_in_flight_is_not_sent(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.failures["begin"] = [FULL]
    place.outbox.add(submission(1))
    async with place.sending(said(ACCEPTED)) as sending:
        assert sending.sent_ids() == []
        await trio.sleep(1)
        assert sending.sent_ids() == ["sub-1"]


async def test_an_answer_that_cannot_be_saved_is_saved_later(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.failures["answered"] = [FULL, FULL]
    place.outbox.add(submission(1))
    async with place.sending(said(ACCEPTED), seconds=5) as sending:
        pass

    assert sending.sent_ids() == ["sub-1"]
    assert place.outbox.told == ["sub-1 Accepted"]


@pytest.mark.parametrize("what", ["begin", "answered"])
async def test_broken_storage_ends_everything(
    place: Place, autojump_clock: MockClock, what: str
) -> None:
    place.outbox.failures[what] = [StorageBroken("journal_io", "The disk is gone.")]
    place.outbox.add(submission(1))

    with pytest.RaisesGroup(StorageBroken, flatten_subgroups=True):
        async with place.sending(said(ACCEPTED)):
            await trio.sleep(1)


async def test_a_save_that_hangs_does_not_hold_up_the_end(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    hanging = Hanging(place.clock)
    place.outbox = hanging
    place.outbox.add(submission(1))
    async with place.sending(said(ACCEPTED)):
        pass

    assert hanging.asked >= 1
    assert trio.current_time() <= 10


async def test_a_submission_that_was_withdrawn_is_not_sent(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    """And an outbox that goes on offering it is not asked without end."""
    place.outbox.withdrawn = {SubmissionId("sub-1")}
    place.outbox.add(submission(1), submission(2, "agent:b"))
    async with place.sending(said(ACCEPTED), seconds=10) as sending:
        assert sending.sent_ids() == ["sub-2"]
        assert place.outbox.begun <= 15


class Hanging(MemoryOutbox):
    """Its answers are never saved."""

    asked = 0

    async def answered(self, *_: object) -> None:
        self.asked += 1
        await trio.sleep_forever()
