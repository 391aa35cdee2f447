"""What each Save means, and what a start reads back."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bridge.core.effects import (
    Forget,
    ForgetAttachment,
    Save,
    SaveAmbiguous,
    SaveAttachment,
    SaveForeignReceipt,
    SaveMessage,
    SaveNamed,
    SaveOffer,
    SaveOffered,
    SaveOfferOutcome,
    SaveOfferRecord,
    SavePending,
    SaveRecalled,
    SaveReceipt,
    SaveSubmission,
    SaveWithheld,
)
from bridge.core.ids import AgentId, AttachmentId, MessageId, OfferId, SubmissionId
from bridge.core.records import (
    DeliveryState,
    OfferOutcome,
    Receipt,
)
from bridge.store.database import Statistics
from bridge.store.deliveries import Usage
from bridge.store.journal import Journal
from tests.fakes.clock import FakeClock
from tests.store.examples import (
    AGENT_ID,
    ATTACHMENT_ID,
    attachment,
    in_state,
    offer,
    pending,
    receipt,
    submission,
)

MESSAGE_ID = MessageId("msg-1")


async def watermark(journal: Journal) -> int:
    found = await journal.attachment(ATTACHMENT_ID)
    assert found is not None
    return found.watermark


async def test_all_that_a_start_needs_comes_back_after_closing(
    path: Path, fake_clock: FakeClock
) -> None:
    async with await Journal.open(path, fake_clock) as first:
        await first.commit(
            [
                SaveAttachment(attachment(1)),
                SaveAttachment(attachment(2)),
                SaveMessage(pending(2)),
                SaveMessage(pending(1)),
                SaveOfferRecord(offer()),
                SaveForeignReceipt(receipt()),
                SaveSubmission(submission(2)),
                SaveSubmission(submission(1)),
            ]
        )
    async with await Journal.open(path, fake_clock) as second:
        assert [found.attachment_id for found in await second.attachments()] == [
            "att-1",
            "att-2",
        ]
        assert await second.deliveries(ATTACHMENT_ID) == [pending(1), pending(2)]
        assert await second.offers_out() == [offer()]
        assert await second.unsent_receipts() == [receipt()]
        assert await second.open_submissions() == [submission(1), submission(2)]
        assert await second.last_submission_number() == 2


async def test_a_new_journal_holds_nothing(journal: Journal) -> None:
    assert await journal.attachments() == []
    assert await journal.attachment(ATTACHMENT_ID) is None
    assert await journal.delivery(ATTACHMENT_ID, MESSAGE_ID) is None
    assert await journal.offer(OfferId("offer-1")) is None
    assert await journal.submission(AGENT_ID, SubmissionId("sub-1")) is None
    assert await journal.last_submission_number() == 0
    assert await journal.usage() == {}
    assert await journal.outbox_usage() == Usage()


async def test_a_checkpoint_empties_the_log_and_loses_nothing(
    journal: Journal, path: Path
) -> None:
    log = path.with_name(f"{path.name}-wal")
    await journal.commit([SaveAttachment(attachment()), SaveMessage(pending(1))])
    assert log.stat().st_size > 0

    await journal.checkpoint()

    assert log.stat().st_size == 0
    assert await journal.deliveries(ATTACHMENT_ID) == [pending(1)]


async def test_a_ping_is_no_write(journal: Journal) -> None:
    await journal.commit([SaveAttachment(attachment())])
    await journal.ping()

    assert journal.statistics() == Statistics(writes=1, transactions=1)


# ---- watermarks --------------------------------------------------------------


async def test_a_message_and_its_watermark_are_saved_together(
    journal: Journal,
) -> None:
    await journal.commit([SaveAttachment(attachment()), SaveMessage(pending(7))])

    assert await watermark(journal) == pending(7).sequence


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
async def test_messages_saved_together_raise_each_owners_watermark_to_its_highest(
    journal: Journal, order: tuple[int, ...]
) -> None:
    other = attachment(2).attachment_id
    await journal.commit([SaveAttachment(attachment()), SaveAttachment(attachment(2))])
    await journal.commit(
        [
            *(SaveMessage(pending(number)) for number in order),
            SaveMessage(pending(7, attachment_id=other)),
            SaveMessage(pending(5, attachment_id=other)),
        ]
    )

    assert await watermark(journal) == pending(3).sequence
    found = await journal.attachment(other)
    assert found is not None
    assert found.watermark == pending(7).sequence
    assert len(await journal.deliveries(ATTACHMENT_ID)) == 3


async def test_the_watermark_never_falls(journal: Journal) -> None:
    """Neither an older message nor an older attachment record lowers it."""
    await journal.commit([SaveAttachment(attachment()), SaveMessage(pending(7))])
    await journal.commit([SaveMessage(pending(3))])
    await journal.commit([SaveAttachment(attachment(watermark=1, purpose="later"))])

    found = await journal.attachment(ATTACHMENT_ID)
    assert found == attachment(watermark=pending(7).sequence, purpose="later")


async def test_sql_that_lowers_the_watermark_is_refused(
    path: Path, fake_clock: FakeClock
) -> None:
    async with await Journal.open(path, fake_clock) as journal:
        await journal.commit([SaveAttachment(attachment(watermark=9))])
    connection = sqlite3.connect(path)
    try:
        with pytest.raises(sqlite3.IntegrityError, match="never falls"):
            connection.execute("UPDATE attachment SET watermark = 8")
    finally:
        connection.close()


async def test_the_receipt_cursor_never_falls(journal: Journal) -> None:
    await journal.commit([SaveAttachment(attachment(receipt_cursor=5))])
    await journal.commit([SaveAttachment(attachment(receipt_cursor=4))])

    assert await journal.attachments() == [attachment(receipt_cursor=5)]


async def test_the_watermark_survives_the_forgetting_of_its_message(
    journal: Journal,
) -> None:
    await journal.commit([SaveAttachment(attachment()), SaveMessage(pending(7))])
    await journal.commit([Forget(ATTACHMENT_ID, MessageId("msg-7"))])

    assert await journal.deliveries(ATTACHMENT_ID) == []
    assert await watermark(journal) == pending(7).sequence


# ---- deliveries --------------------------------------------------------------


@pytest.mark.parametrize(
    ("save", "state"),
    [
        (SaveOffer, DeliveryState.OFFERING),
        (SavePending, DeliveryState.PENDING),
        (SaveRecalled, DeliveryState.RECALLED),
        (SaveOffered, DeliveryState.OFFERED),
        (SaveAmbiguous, DeliveryState.AMBIGUOUS),
        (SaveWithheld, DeliveryState.WITHHELD),
        (SaveNamed, DeliveryState.AMBIGUOUS),
    ],
)
async def test_a_save_of_a_delivery_writes_the_whole_next_record(
    journal: Journal, save: type[SaveOffer], state: DeliveryState
) -> None:
    await journal.commit([SaveAttachment(attachment()), SaveMessage(pending(1))])
    following = in_state(1, state, changed_at=5.0, named=True, reason="why")

    await journal.commit([save(following)])

    assert await journal.delivery(ATTACHMENT_ID, MESSAGE_ID) == following


async def test_a_receipt_and_its_row_are_saved_together(journal: Journal) -> None:
    await journal.commit([SaveAttachment(attachment()), SaveMessage(pending(1))])
    admitted = in_state(1, DeliveryState.ADMITTED)

    await journal.commit([SaveReceipt(admitted, receipt())])

    assert await journal.deliveries(ATTACHMENT_ID) == [admitted]
    assert await journal.unsent_receipts() == [receipt()]


async def test_a_message_of_no_attachment_is_a_bug_that_is_not_saved(
    journal: Journal,
) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        await journal.commit([SaveMessage(pending(1))])


async def test_a_save_without_a_meaning_is_a_bug(journal: Journal) -> None:
    class SaveNonsense(Save, frozen=True):
        """Nothing that the store knows."""

    with pytest.raises(TypeError, match="SaveNonsense"):
        await journal.commit([SaveNonsense()])


async def test_forgetting_a_delivery_takes_its_finished_offer_along(
    journal: Journal,
) -> None:
    await journal.commit(
        [
            SaveAttachment(attachment()),
            SaveOfferRecord(offer()),
            SaveMessage(in_state(1, DeliveryState.OFFERED, offer_id="offer-1")),
            SaveMessage(in_state(2, DeliveryState.OFFERED, offer_id="offer-1")),
            SaveOfferOutcome(OfferId("offer-1"), OfferOutcome.EMITTED),
        ]
    )
    await journal.commit([Forget(ATTACHMENT_ID, MESSAGE_ID)])
    assert len(await journal.offers(ATTACHMENT_ID)) == 1

    await journal.commit([Forget(ATTACHMENT_ID, MessageId("msg-2"))])
    assert await journal.offers(ATTACHMENT_ID) == []


async def test_a_message_beyond_pending_in_any_attachment_was_offered(
    journal: Journal,
) -> None:
    """A name that moved does not show its new session what the old one saw."""
    shown = in_state(1, DeliveryState.OFFERED)
    await journal.commit([SaveAttachment(attachment(1)), SaveAttachment(attachment(2))])
    await journal.commit([SaveMessage(shown)])

    asked = [MESSAGE_ID, MessageId("msg-2")]
    assert await journal.offered_among(AGENT_ID, asked) == {MESSAGE_ID}
    assert not await journal.offered_among(AgentId("agent-2"), asked)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (DeliveryState.PENDING, False),
        (DeliveryState.WITHHELD, False),
        (DeliveryState.OFFERING, True),
        (DeliveryState.RECALLED, True),
        (DeliveryState.AMBIGUOUS, True),
        (DeliveryState.ADMITTED, True),
        (DeliveryState.PROCESSED, True),
    ],
)
async def test_what_certainly_was_not_shown_was_not_offered(
    journal: Journal, state: DeliveryState, expected: bool
) -> None:
    await journal.commit(
        [SaveAttachment(attachment()), SaveMessage(in_state(1, state))]
    )

    found = await journal.offered_among(AGENT_ID, [MESSAGE_ID])
    assert (MESSAGE_ID in found) is expected


@pytest.mark.parametrize("said", ["offered", "unsure", "admitted"])
async def test_what_is_forgotten_and_not_yet_told_was_offered(
    journal: Journal, said: str
) -> None:
    sign = Receipt(ATTACHMENT_ID, MESSAGE_ID, said, 1.0)
    await journal.commit(
        [
            SaveAttachment(attachment()),
            SaveMessage(in_state(1, DeliveryState.OFFERED)),
            SaveForeignReceipt(sign),
            Forget(ATTACHMENT_ID, MESSAGE_ID),
        ]
    )

    assert await journal.offered_among(AGENT_ID, [MESSAGE_ID]) == {MESSAGE_ID}


async def test_usage_counts_rows_and_body_bytes_by_attachment(
    journal: Journal,
) -> None:
    other = pending(1, "abc", attachment_id=AttachmentId("att-2"))
    await journal.commit([SaveAttachment(attachment(1)), SaveAttachment(attachment(2))])
    await journal.commit(
        [
            SaveMessage(pending(1, "h\u00e9\0llo")),
            SaveMessage(in_state(2, DeliveryState.OFFERED)),
            SaveMessage(other),
        ]
    )

    assert await journal.usage() == {"att-1": Usage(2, 7), "att-2": Usage(1, 3)}


# ---- attachments -------------------------------------------------------------


async def test_forgetting_an_attachment_removes_all_that_belongs_to_it(
    journal: Journal,
) -> None:
    await journal.commit(
        [
            SaveAttachment(attachment()),
            SaveMessage(pending(1)),
            SaveOfferRecord(offer()),
            SaveForeignReceipt(receipt()),
            SaveSubmission(submission()),
        ]
    )
    await journal.commit([ForgetAttachment(ATTACHMENT_ID)])

    assert await journal.attachments() == []
    assert await journal.deliveries(ATTACHMENT_ID) == []
    assert await journal.offers_out() == []
    assert await journal.unsent_receipts() == []
    assert await journal.open_submissions() == []
