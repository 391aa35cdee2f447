"""What is kept of offers, receipts and submissions, and for how long."""

from __future__ import annotations

import sqlite3

import msgspec
import pytest

from bridge.core.effects import (
    Forget,
    ForgetAttachment,
    ForgetSubmission,
    SaveAttachment,
    SaveForeignReceipt,
    SaveOfferOutcome,
    SaveOfferRecord,
    SaveReceipt,
    SaveReceiptState,
    SaveSubmission,
)
from bridge.core.ids import AgentId, AttachmentId, MessageId, OfferId, SubmissionId
from bridge.core.records import (
    DeliveryState,
    OfferOutcome,
    ReceiptState,
    SubmissionState,
)
from bridge.store.journal import Journal
from tests.store.examples import (
    AGENT_ID,
    ATTACHMENT_ID,
    attachment,
    in_state,
    offer,
    receipt,
    submission,
)

MESSAGE_ID = MessageId("msg-1")


def sent(number: int = 1) -> SaveReceiptState:
    return SaveReceiptState(receipt(number, state=ReceiptState.SENT))


# ---- offers ------------------------------------------------------------------


async def test_an_offer_with_an_outcome_is_no_longer_out(journal: Journal) -> None:
    await journal.commit([SaveAttachment(attachment()), SaveOfferRecord(offer())])
    await journal.commit([SaveOfferOutcome(OfferId("offer-1"), OfferOutcome.UNKNOWN)])

    assert await journal.offers_out() == []
    found = await journal.offer(OfferId("offer-1"))
    assert found == offer(outcome=OfferOutcome.UNKNOWN)


async def test_the_next_offer_replaces_one_that_was_certainly_not_emitted(
    journal: Journal,
) -> None:
    outcome = SaveOfferOutcome(OfferId("offer-1"), OfferOutcome.NOT_EMITTED)
    await journal.commit(
        [SaveAttachment(attachment()), SaveOfferRecord(offer(1)), outcome]
    )
    await journal.commit([SaveOfferRecord(offer(2))])

    assert await journal.offers(ATTACHMENT_ID) == [offer(2)]


# ---- receipts ----------------------------------------------------------------


async def test_unsent_receipts_keep_the_order_they_were_given_in(
    journal: Journal,
) -> None:
    """Admitted goes out before processed, however the times read."""
    admitted = receipt(1, at=9.0)
    processed = receipt(1, delivery="processed", at=2.0)
    await journal.commit([SaveAttachment(attachment())])
    await journal.commit([SaveForeignReceipt(admitted), SaveForeignReceipt(processed)])

    assert await journal.unsent_receipts() == [admitted, processed]


async def test_a_sent_receipt_stays_with_its_delivery(journal: Journal) -> None:
    admitted = in_state(1, DeliveryState.ADMITTED)
    await journal.commit([SaveAttachment(attachment())])
    await journal.commit([SaveReceipt(admitted, receipt()), sent()])

    assert await journal.unsent_receipts() == []
    assert await receipt_count(journal) == 1

    await journal.commit([Forget(ATTACHMENT_ID, MESSAGE_ID)])
    assert await receipt_count(journal) == 0


async def test_a_settled_receipt_for_a_foreign_id_is_dropped(
    journal: Journal,
) -> None:
    await journal.commit([SaveAttachment(attachment()), SaveForeignReceipt(receipt())])
    await journal.commit([sent()])

    assert await receipt_count(journal) == 0


async def test_an_unsent_receipt_outlives_its_delivery(journal: Journal) -> None:
    processed = in_state(1, DeliveryState.PROCESSED)
    await journal.commit([SaveAttachment(attachment())])
    await journal.commit([SaveReceipt(processed, receipt())])
    await journal.commit([Forget(ATTACHMENT_ID, MESSAGE_ID)])

    assert await journal.unsent_receipts() == [receipt()]


# ---- submissions -------------------------------------------------------------


async def test_one_submission_id_of_one_agent_is_one_row_when_its_lease_moves(
    journal: Journal,
) -> None:
    moved = submission(attachment_id=AttachmentId("att-2"))
    await journal.commit([SaveAttachment(attachment(1)), SaveAttachment(attachment(2))])
    await journal.commit([SaveSubmission(submission()), SaveSubmission(moved)])
    await journal.commit([ForgetAttachment(ATTACHMENT_ID)])

    assert await journal.open_submissions() == [moved]
    assert await journal.submission(AGENT_ID, SubmissionId("sub-1")) == moved
    assert await journal.submissions(AttachmentId("att-2")) == [moved]


async def test_two_agents_may_use_the_same_submission_id(journal: Journal) -> None:
    other = submission(agent_id=AgentId("agent-2"), number=2)
    await journal.commit([SaveAttachment(attachment())])
    await journal.commit([SaveSubmission(submission()), SaveSubmission(other)])

    assert await journal.open_submissions() == [submission(), other]


@pytest.mark.parametrize(
    ("state", "is_open"),
    [
        (SubmissionState.QUEUED, True),
        (SubmissionState.IN_FLIGHT, True),
        (SubmissionState.UNCERTAIN, True),
        (SubmissionState.WAITING, True),
        (SubmissionState.ACCEPTED, False),
        (SubmissionState.REFUSED, False),
        (SubmissionState.ORPHANED, False),
    ],
)
async def test_a_submission_is_open_until_a_definite_answer(
    journal: Journal, state: SubmissionState, is_open: bool
) -> None:
    saved = submission(state=state)
    await journal.commit([SaveAttachment(attachment()), SaveSubmission(saved)])

    assert await journal.open_submissions() == ([saved] if is_open else [])
    assert (await journal.outbox_usage()).rows == int(is_open)


async def test_a_refused_submission_is_untold_until_its_agent_was_told(
    journal: Journal,
) -> None:
    refused = submission(state=SubmissionState.REFUSED)
    await journal.commit([SaveAttachment(attachment()), SaveSubmission(refused)])
    assert await journal.untold_submissions() == [refused]

    told = msgspec.structs.replace(refused, told=True)
    await journal.commit([SaveSubmission(told)])
    assert await journal.untold_submissions() == []


async def test_a_forgotten_submission_is_gone(journal: Journal) -> None:
    await journal.commit([SaveAttachment(attachment()), SaveSubmission(submission())])
    await journal.commit([ForgetSubmission(SubmissionId("sub-1"), ATTACHMENT_ID)])

    assert await journal.open_submissions() == []


async def receipt_count(journal: Journal) -> int:
    def count(connection: sqlite3.Connection) -> int:
        found = connection.execute("SELECT count(*) FROM receipt").fetchone()
        return int(found[0])

    return await journal._database.read(count)
