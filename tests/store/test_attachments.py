"""The attachment rows: what only rises, and what goes with an attachment."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.ids import AttachmentId
from bridge.core.records import Attachment, AttachmentState
from bridge.store import attachments, deliveries, offers, receipts, submissions
from tests.store.examples import (
    ANY_ATTACHMENT,
    ATTACHMENT_ID,
    KEY,
    attachment,
    offer,
    pending,
    receipt,
    submission,
)
from tests.store.real_file import RealFile

OTHER_ID = AttachmentId("att-2")
TABLES = ("delivery", "offer", "receipt", "submission")


def watermark(file: RealFile) -> int:
    found = file.reading(attachments.read_one, ATTACHMENT_ID)
    assert found is not None
    return found.watermark


@given(ANY_ATTACHMENT, st.sampled_from(AttachmentState))
def test_an_attachment_is_read_as_it_was_written(
    any_file: RealFile, record: Attachment, state: AttachmentState
) -> None:
    any_file.empty()
    saved = replace(record, state=state)
    attachments.save(any_file.writing, saved)

    assert any_file.reading(attachments.read_one, ATTACHMENT_ID) == saved


def test_its_process_and_its_state_come_back_as_their_own_types(
    file: RealFile,
) -> None:
    found = file.reading(attachments.read_one, ATTACHMENT_ID)

    assert found is not None
    assert found.process_key == KEY
    assert found.state is AttachmentState.NEW


def test_the_next_record_takes_the_place_of_the_one_before(file: RealFile) -> None:
    following = attachment(state=AttachmentState.OFFLINE, offline_since=9.0)
    attachments.save(file.writing, following)

    assert file.reading(attachments.read_all) == [following, attachment(2)]


def test_attachments_are_read_oldest_first(file: RealFile) -> None:
    """Those of one moment by their id, so that every read has one order."""
    for number, created_at in ((5, 0.5), (4, 2.0), (3, 2.0)):
        attachments.save(file.writing, attachment(number, created_at=created_at))

    found = file.reading(attachments.read_all)
    assert [each.attachment_id for each in found] == [
        "att-5", "att-1", "att-2", "att-3", "att-4",
    ]  # fmt: skip


def test_an_attachment_that_is_not_there_is_none(file: RealFile) -> None:
    assert file.reading(attachments.read_one, AttachmentId("att-9")) is None


# ---- what only rises -----------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.sampled_from(["message", "record"]), st.integers(0, 2**62)),
        max_size=8,
    )
)
def test_a_watermark_is_the_highest_that_was_ever_saved(
    any_file: RealFile, steps: list[tuple[str, int]]
) -> None:
    """Whether a message raised it or a record that was read before carried it."""
    any_file.empty()
    for kind, value in steps:
        if kind == "message":
            attachments.raise_watermark(any_file.writing, ATTACHMENT_ID, value)
        else:
            attachments.save(any_file.writing, attachment(watermark=value))

    assert watermark(any_file) == max([0, *(value for _, value in steps)])


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=5))
def test_a_receipt_cursor_is_the_highest_that_was_ever_saved(
    any_file: RealFile, values: list[int]
) -> None:
    any_file.empty()
    for value in values:
        attachments.save(any_file.writing, attachment(receipt_cursor=value))

    found = any_file.reading(attachments.read_one, ATTACHMENT_ID)
    assert found == attachment(receipt_cursor=max(values))


def test_raising_one_watermark_leaves_the_others(file: RealFile) -> None:
    attachments.raise_watermark(file.writing, OTHER_ID, 7)

    assert watermark(file) == 0
    assert file.reading(attachments.read_one, OTHER_ID) == attachment(2, watermark=7)


def test_raising_the_watermark_of_nobody_makes_nobody(file: RealFile) -> None:
    attachments.raise_watermark(file.writing, AttachmentId("att-9"), 7)

    assert file.reading(attachments.read_all) == [attachment(1), attachment(2)]


def test_the_file_itself_refuses_a_lower_watermark(file: RealFile) -> None:
    attachments.raise_watermark(file.writing, ATTACHMENT_ID, 9)

    with pytest.raises(sqlite3.IntegrityError, match="never falls"):
        file.writing.execute("UPDATE attachment SET watermark = 8")
    assert watermark(file) == 9


# ---- forgetting ----------------------------------------------------------------


def test_all_that_belongs_to_a_forgotten_attachment_goes_and_nothing_else(
    file: RealFile,
) -> None:
    for each in (ATTACHMENT_ID, OTHER_ID):
        deliveries.save(file.writing, pending(1, attachment_id=each))
        offers.save(file.writing, offer(offer_id=f"offer-{each}", attachment_id=each))
        receipts.save(file.writing, receipt(attachment_id=each))
        mine = submission(submission_id=f"sub-{each}", attachment_id=each)
        submissions.save(file.writing, mine)

    attachments.forget(file.writing, ATTACHMENT_ID)

    assert file.reading(attachments.read_all) == [attachment(2)]
    assert {table: file.count(table) for table in TABLES} == dict.fromkeys(TABLES, 1)
    assert file.reading(deliveries.read_all, OTHER_ID) == [
        pending(1, attachment_id=OTHER_ID)
    ]


def test_forgetting_nobody_is_harmless(file: RealFile) -> None:
    attachments.forget(file.writing, AttachmentId("att-9"))

    assert file.count("attachment") == 2
