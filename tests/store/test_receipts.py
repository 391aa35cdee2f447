"""The receipt rows: their order, and how long a settled one stays."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.ids import AttachmentId
from bridge.core.records import DeliveryState, Receipt, ReceiptState
from bridge.store import deliveries, receipts
from tests.store.examples import ANY_RECEIPT, in_state, receipt
from tests.store.real_file import RealFile

SETTLED = [ReceiptState.SENT, ReceiptState.REFUSED]


@given(ANY_RECEIPT)
def test_a_receipt_is_read_as_it_was_written(
    any_file: RealFile, record: Receipt
) -> None:
    any_file.empty()
    receipts.save(any_file.writing, record)

    [found] = any_file.reading(receipts.read_unsent)
    assert found == record
    assert found.state is ReceiptState.UNSENT


@given(st.permutations(range(6)), st.lists(st.floats(0, 9), min_size=6, max_size=6))
def test_receipts_go_out_in_the_order_they_were_given(
    any_file: RealFile, numbers: list[int], times: list[float]
) -> None:
    """Whatever their ids and their times say."""
    any_file.empty()
    given_receipts = [
        receipt(number, at=at) for number, at in zip(numbers, times, strict=True)
    ]
    for each in given_receipts:
        receipts.save(any_file.writing, each)

    assert any_file.reading(receipts.read_unsent) == given_receipts


def test_a_receipt_that_is_given_again_keeps_its_place(file: RealFile) -> None:
    for number in (1, 2):
        receipts.save(file.writing, receipt(number))
    again = receipt(1, at=9.0, evidence="native_queue")
    receipts.save(file.writing, again)

    assert file.reading(receipts.read_unsent) == [again, receipt(2)]


def test_each_sign_about_a_message_is_a_receipt_of_its_own(file: RealFile) -> None:
    signs = [receipt(delivery=sign) for sign in ("offered", "admitted", "processed")]
    for sign in signs:
        receipts.save(file.writing, sign)
    receipts.save_state(file.writing, replace(signs[1], state=ReceiptState.SENT))

    assert file.reading(receipts.read_unsent) == [signs[0], signs[2]]


@pytest.mark.parametrize("state", SETTLED)
def test_a_settled_receipt_stays_as_long_as_its_message(
    file: RealFile, state: ReceiptState
) -> None:
    deliveries.save(file.writing, in_state(1, DeliveryState.ADMITTED))
    for number in (1, 2):
        receipts.save(file.writing, receipt(number))
        receipts.save_state(file.writing, receipt(number, state=state))

    assert file.reading(receipts.read_unsent) == []
    kept = file.writing.execute("SELECT message_id, state FROM receipt").fetchall()
    assert kept == [("msg-1", state)]


def test_a_receipt_that_waits_again_is_not_dropped(file: RealFile) -> None:
    """Unsent is no settled state, with or without its message."""
    receipts.save(file.writing, receipt(1))
    receipts.save_state(file.writing, receipt(1))

    assert file.reading(receipts.read_unsent) == [receipt(1)]


def test_settling_what_is_not_there_makes_nothing(file: RealFile) -> None:
    receipts.save(file.writing, receipt(1))
    of_another = receipt(1, attachment_id=AttachmentId("att-2"))
    receipts.save_state(file.writing, replace(of_another, state=ReceiptState.SENT))

    assert file.reading(receipts.read_unsent) == [receipt(1)]
    assert file.count("receipt") == 1


def test_a_receipt_of_nobody_is_refused_by_the_file(file: RealFile) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        receipts.save(file.writing, receipt(attachment_id=AttachmentId("att-9")))
