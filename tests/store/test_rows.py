"""Records and rows: what was written is what is read."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.records import (
    Attachment,
    AttachmentState,
    DeliveryState,
    ReceiptState,
    SubmissionState,
)
from bridge.store import opening
from bridge.store.attachments import ATTACHMENTS
from bridge.store.deliveries import DELIVERIES
from bridge.store.offers import OFFERS
from bridge.store.receipts import RECEIPTS
from bridge.store.rows import Table
from bridge.store.submissions import SUBMISSIONS
from tests.store import examples

TABLES: list[Table[Any]] = [ATTACHMENTS, DELIVERIES, OFFERS, RECEIPTS, SUBMISSIONS]


def empty_tables() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema = Path(opening.__file__).with_name("schema.sql").read_text()
    connection.executescript(schema)
    ATTACHMENTS.save(connection, examples.attachment())
    return connection


def round_trip(table: Table[Any], record: msgspec.Struct) -> msgspec.Struct:
    connection = empty_tables()
    try:
        connection.execute(f"DELETE FROM {table.name}")
        table.save(connection, record)
        [read] = table.read(connection)
    finally:
        connection.close()
    assert isinstance(read, msgspec.Struct)
    return read


@given(examples.ANY_ATTACHMENT, st.sampled_from(AttachmentState))
def test_an_attachment_is_read_as_it_was_written(
    record: Attachment, state: AttachmentState
) -> None:
    changed = msgspec.structs.replace(record, state=state)

    assert round_trip(ATTACHMENTS, changed) == changed


@given(examples.ANY_DELIVERY)
def test_a_delivery_is_read_as_it_was_written(record: msgspec.Struct) -> None:
    assert round_trip(DELIVERIES, record) == record


@given(examples.ANY_OFFER)
def test_an_offer_is_read_as_it_was_written(record: msgspec.Struct) -> None:
    assert round_trip(OFFERS, record) == record


@given(examples.ANY_RECEIPT, st.sampled_from(ReceiptState))
def test_a_receipt_is_read_as_it_was_written(
    record: msgspec.Struct, state: ReceiptState
) -> None:
    changed = msgspec.structs.replace(record, state=state)

    assert round_trip(RECEIPTS, changed) == changed


@given(examples.ANY_SUBMISSION, st.sampled_from(SubmissionState))
def test_a_submission_is_read_as_it_was_written(
    record: msgspec.Struct, state: SubmissionState
) -> None:
    changed = msgspec.structs.replace(record, state=state)

    assert round_trip(SUBMISSIONS, changed) == changed


def test_values_come_back_as_their_own_types() -> None:
    """A state is its enum again, not the text that equals it."""
    read = round_trip(DELIVERIES, examples.pending(1, named=True))

    assert read.state is DeliveryState.PENDING  # type: ignore[attr-defined]
    assert read.named is True  # type: ignore[attr-defined]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_has_exactly_its_records_fields(table: Table[Any]) -> None:
    connection = empty_tables()
    try:
        found = connection.execute(f"PRAGMA table_info({table.name})").fetchall()
    finally:
        connection.close()

    assert tuple(row[1] for row in found if row[1] != "number") == tuple(
        column for column in table.columns if column != "number"
    )


def test_saving_again_overwrites_the_row_with_the_same_key() -> None:
    connection = empty_tables()
    try:
        DELIVERIES.save(connection, examples.pending(1, "first"))
        DELIVERIES.save(connection, examples.pending(1, "second"))

        assert [read.body for read in DELIVERIES.read(connection)] == ["second"]
    finally:
        connection.close()


def test_text_that_is_no_unicode_is_not_saved() -> None:
    connection = empty_tables()
    try:
        with pytest.raises(UnicodeEncodeError):
            DELIVERIES.save(connection, examples.pending(1, "\ud800"))
    finally:
        connection.close()


def test_a_body_outside_its_states_is_a_bug_that_the_table_refuses() -> None:
    connection = empty_tables()
    late = examples.pending(1, state=DeliveryState.OFFERED)
    try:
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            DELIVERIES.save(connection, late)
    finally:
        connection.close()
