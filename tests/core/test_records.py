"""What is kept: records that never change, and the text of a process for all time."""

from __future__ import annotations

from enum import StrEnum

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import records
from bridge.core.ids import (
    AgentId,
    AttachmentId,
    MessageId,
    OfferId,
    SessionId,
    SubmissionId,
)
from bridge.core.records import (
    Attachment,
    AttachmentState,
    Delivery,
    DeliveryState,
    Message,
    Offer,
    OfferOutcome,
    ProcessKey,
    Receipt,
    ReceiptState,
    Submission,
    SubmissionState,
    process_key,
)

ATTACHMENT_ID = AttachmentId("att-1")
KEY = ProcessKey("0f3c-boot", 4242, 128918)
FRESH: list[msgspec.Struct] = [
    KEY,
    Attachment(ATTACHMENT_ID, AgentId("agent-1"), "bob", "codex", SessionId("s"), KEY),
    Delivery(ATTACHMENT_ID, MessageId("msg-1")),
    Offer(OfferId("offer-1"), ATTACHMENT_ID, SessionId("s"), "hook", "nonce", 1.0, ()),
    Receipt(ATTACHMENT_ID, MessageId("msg-1"), "admitted", 1.0),
    Submission(
        SubmissionId("sub-1"), ATTACHMENT_ID, AgentId("agent-1"), "agent:bob", "hash"
    ),
]
STATES: list[type[StrEnum]] = [
    AttachmentState,
    DeliveryState,
    OfferOutcome,
    ReceiptState,
    SubmissionState,
]


def name_of(value: object) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__


# ---- one process for all time --------------------------------------------------


@given(st.text(), st.integers(0), st.integers(0))
def test_a_process_key_is_read_as_it_was_written(
    boot_id: str, pid: int, start: int
) -> None:
    """Whatever the boot id is: the two numbers are read from the end."""
    key = ProcessKey(boot_id, pid, start)

    assert process_key(key.text()) == key


def test_the_text_of_a_process_key() -> None:
    assert KEY.text() == "0f3c-boot:4242:128918"


@pytest.mark.parametrize("text", ["", "boot", "boot:1", "boot:1:", "boot::1", "b:x:1"])
def test_another_text_is_no_process_key(text: str) -> None:
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        process_key(text)


@pytest.mark.parametrize(
    "other",
    [
        ProcessKey("another-boot", 4242, 128918),
        ProcessKey("0f3c-boot", 4243, 128918),
        ProcessKey("0f3c-boot", 4242, 128919),
    ],
    ids=["after a reboot", "another pid", "the pid used again"],
)
def test_a_process_is_the_same_only_if_all_three_are(other: ProcessKey) -> None:
    assert other != KEY
    assert other.text() != KEY.text()
    assert len({other, KEY, process_key(KEY.text())}) == 2


# ---- records -------------------------------------------------------------------


@pytest.mark.parametrize("record", FRESH, ids=name_of)
def test_a_record_never_changes_in_place(record: msgspec.Struct) -> None:
    before = msgspec.json.encode(record)

    for name in record.__struct_fields__:
        with pytest.raises(AttributeError, match="immutable"):
            setattr(record, name, "other")
    assert msgspec.json.encode(record) == before


def test_no_kind_of_record_can_be_changed() -> None:
    kinds = [
        kind
        for kind in vars(records).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    ]

    assert {type(record) for record in FRESH} | {Message, msgspec.Struct} == set(kinds)
    assert all(
        kind.__struct_config__.frozen for kind in kinds if kind is not msgspec.Struct
    )


@pytest.mark.parametrize("record", FRESH, ids=name_of)
def test_the_next_record_is_another_value_and_leaves_the_one_before(
    record: msgspec.Struct,
) -> None:
    [*_, name] = record.__struct_fields__
    before = getattr(record, name)
    following = msgspec.structs.replace(record, **{name: "next"})

    assert following != record
    assert getattr(record, name) == before


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (FRESH[1], AttachmentState.NEW),
        (FRESH[2], DeliveryState.NONE),
        (FRESH[4], ReceiptState.UNSENT),
        (FRESH[5], SubmissionState.QUEUED),
    ],
    ids=lambda value: value if isinstance(value, str) else name_of(value),
)
def test_a_fresh_record_stands_where_nothing_has_happened(
    record: msgspec.Struct, state: StrEnum
) -> None:
    assert getattr(record, "state") is state  # noqa: B009


def test_a_fresh_delivery_holds_no_body_and_belongs_to_no_offer() -> None:
    fresh = Delivery(ATTACHMENT_ID, MessageId("msg-1"))

    assert (fresh.body, fresh.offer_id, fresh.sequence) == (None, None, 0)
    assert not fresh.named
    assert not fresh.native_closed


def test_a_fresh_attachment_has_shown_nothing_and_taken_nothing() -> None:
    fresh = FRESH[1]
    assert isinstance(fresh, Attachment)

    assert (fresh.watermark, fresh.offered_through, fresh.receipt_cursor) == (0, 0, 0)
    assert (fresh.setup_at, fresh.guidance_at, fresh.offline_since) == (None,) * 3


def test_a_fresh_offer_counts_as_out_until_more_is_known() -> None:
    """A crash right after its commit finds it out, so it is never shown again."""
    fresh = FRESH[3]
    assert isinstance(fresh, Offer)

    assert fresh.outcome is OfferOutcome.OUT


# ---- states --------------------------------------------------------------------


@pytest.mark.parametrize("states", STATES, ids=name_of)
def test_a_state_is_written_as_its_own_name_in_lower_case(
    states: type[StrEnum],
) -> None:
    """The words are in the journal: another spelling could not be read again."""
    for state in states:
        assert state.value == state.name.lower()
        assert states(state.value) is state


@pytest.mark.parametrize("states", STATES, ids=name_of)
def test_a_word_that_is_no_state_is_refused(states: type[StrEnum]) -> None:
    with pytest.raises(ValueError, match="shown"):
        states("shown")
