"""The delivery rows: bodies, what was shown, and what goes with a message."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import AgentId, AttachmentId, MessageId, OfferId
from bridge.core.records import Delivery, DeliveryState, OfferOutcome, ReceiptState
from bridge.store import attachments, deliveries, offers, receipts
from bridge.store.deliveries import Usage
from tests.store.examples import (
    AGENT_ID,
    ANY_DELIVERY,
    ATTACHMENT_ID,
    WITH_BODY,
    attachment,
    in_state,
    offer,
    pending,
    receipt,
)
from tests.store.real_file import RealFile

MESSAGE_ID = MessageId("msg-1")
OTHER_ID = AttachmentId("att-2")
OFFER_ID = OfferId("offer-1")
MAY_HAVE_BEEN_SHOWN = {
    DeliveryState.OFFERING,
    DeliveryState.RECALLED,
    DeliveryState.OFFERED,
    DeliveryState.AMBIGUOUS,
    DeliveryState.ADMITTED,
    DeliveryState.PROCESSED,
}


@given(ANY_DELIVERY)
def test_a_delivery_is_read_as_it_was_written(
    any_file: RealFile, record: Delivery
) -> None:
    any_file.empty()
    deliveries.save(any_file.writing, record)

    assert any_file.reading(deliveries.read_all, ATTACHMENT_ID) == [record]
    assert (
        any_file.reading(deliveries.read_one, ATTACHMENT_ID, record.message_id)
        == record
    )


@given(st.lists(st.tuples(st.integers(1, 4), st.text(max_size=5)), max_size=9))
def test_many_saved_at_once_are_as_if_each_were_saved(
    any_file: RealFile, rows: list[tuple[int, str]]
) -> None:
    """Also one id more than once: the last one stands."""
    saved = [pending(number, body=body) for number, body in rows]
    any_file.empty()
    for each in saved:
        deliveries.save(any_file.writing, each)
    one_by_one = any_file.reading(deliveries.read_all, ATTACHMENT_ID)
    any_file.empty()
    deliveries.save_all(any_file.writing, saved)

    assert any_file.reading(deliveries.read_all, ATTACHMENT_ID) == one_by_one


def test_its_state_and_its_signs_come_back_as_their_own_types(file: RealFile) -> None:
    deliveries.save(file.writing, pending(1, named=True))

    found = file.reading(deliveries.read_one, ATTACHMENT_ID, MESSAGE_ID)
    assert found is not None
    assert found.state is DeliveryState.PENDING
    assert found.named is True
    assert found.native_closed is False


def test_deliveries_are_read_in_the_order_of_their_sequence(file: RealFile) -> None:
    for number in (3, 1, 2):
        deliveries.save(file.writing, pending(number))
    deliveries.save(file.writing, pending(4, attachment_id=OTHER_ID))

    assert file.reading(deliveries.read_all, ATTACHMENT_ID) == [
        pending(1),
        pending(2),
        pending(3),
    ]


def test_a_delivery_that_is_not_there_is_none(file: RealFile) -> None:
    deliveries.save(file.writing, pending(1, attachment_id=OTHER_ID))

    assert file.reading(deliveries.read_one, ATTACHMENT_ID, MESSAGE_ID) is None


# ---- bodies --------------------------------------------------------------------


def test_a_save_without_a_body_erases_it(file: RealFile) -> None:
    deliveries.save(file.writing, pending(1, "secret"))
    deliveries.save(file.writing, in_state(1, DeliveryState.OFFERED))

    assert file.reading(deliveries.read_all, ATTACHMENT_ID) == [
        in_state(1, DeliveryState.OFFERED)
    ]


@pytest.mark.parametrize("state", sorted(set(DeliveryState) - set(WITH_BODY)))
def test_a_body_outside_its_states_is_refused_by_the_file(
    file: RealFile, state: DeliveryState
) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        deliveries.save(file.writing, pending(1, state=state))


def test_a_message_of_nobody_is_refused_by_the_file(file: RealFile) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        deliveries.save(file.writing, pending(1, attachment_id="att-9"))


# ---- what may have been shown ----------------------------------------------------


@pytest.mark.parametrize("state", DeliveryState)
def test_what_may_have_been_shown_was_offered(
    file: RealFile, state: DeliveryState
) -> None:
    deliveries.save(file.writing, in_state(1, state))

    was_offered = file.reading(deliveries.was_offered, AGENT_ID, MESSAGE_ID)
    assert was_offered is (state in MAY_HAVE_BEEN_SHOWN)


def test_any_attachment_of_the_agent_counts_and_no_other_agents(
    file: RealFile,
) -> None:
    other = AgentId("agent-2")
    attachments.save(file.writing, attachment(3, agent_id=other))
    deliveries.save(
        file.writing, in_state(1, DeliveryState.ADMITTED, attachment_id=OTHER_ID)
    )

    assert file.reading(deliveries.was_offered, AGENT_ID, MESSAGE_ID)
    assert not file.reading(deliveries.was_offered, other, MESSAGE_ID)
    assert not file.reading(deliveries.was_offered, AGENT_ID, MessageId("msg-2"))


# ---- forgetting ------------------------------------------------------------------


def test_forgetting_what_is_not_there_is_harmless(file: RealFile) -> None:
    deliveries.save(file.writing, pending(1))
    deliveries.forget(file.writing, ATTACHMENT_ID, MessageId("msg-9"))
    deliveries.forget(file.writing, OTHER_ID, MESSAGE_ID)

    assert file.count("delivery") == 1


def test_a_message_without_an_offer_takes_no_offer_along(file: RealFile) -> None:
    offers.save(file.writing, offer(outcome=OfferOutcome.EMITTED))
    deliveries.save(file.writing, pending(1))
    deliveries.forget(file.writing, ATTACHMENT_ID, MESSAGE_ID)

    assert file.count("delivery") == 0
    assert file.count("offer") == 1


@pytest.mark.parametrize("outcome", OfferOutcome)
def test_the_last_message_of_an_offer_takes_it_along_unless_it_is_out(
    file: RealFile, outcome: OfferOutcome
) -> None:
    """An offer that is out is still needed: nobody knows what became of it."""
    offers.save(file.writing, offer(outcome=outcome))
    for number in (1, 2):
        shown = in_state(number, DeliveryState.OFFERED, offer_id=OFFER_ID)
        deliveries.save(file.writing, shown)

    deliveries.forget(file.writing, ATTACHMENT_ID, MESSAGE_ID)
    assert file.count("offer") == 1

    deliveries.forget(file.writing, ATTACHMENT_ID, MessageId("msg-2"))
    assert file.count("offer") == int(outcome is OfferOutcome.OUT)


@pytest.mark.parametrize("state", ReceiptState)
def test_an_unsent_receipt_outlives_its_message_and_a_settled_one_does_not(
    file: RealFile, state: ReceiptState
) -> None:
    deliveries.save(file.writing, in_state(1, DeliveryState.ADMITTED))
    receipts.save(file.writing, receipt(1, state=state))
    deliveries.forget(file.writing, ATTACHMENT_ID, MESSAGE_ID)

    assert file.count("receipt") == int(state is ReceiptState.UNSENT)


# ---- usage -----------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.text(max_size=9)), max_size=9))
def test_usage_is_rows_and_utf_8_bytes_of_bodies(
    any_file: RealFile, bodies: list[tuple[int, str]]
) -> None:
    any_file.empty()
    expected: dict[str, Usage] = {}
    for number, (owner, body) in enumerate(bodies):
        key = AttachmentId(f"att-{owner}")
        saved = pending(number, attachment_id=key, body=body)
        deliveries.save(any_file.writing, saved)
        before = expected.get(key, Usage())
        size = len(body.encode())
        expected[key] = Usage(before.rows + 1, before.body_bytes + size)

    assert any_file.reading(deliveries.usage) == expected


def test_a_row_without_a_body_counts_as_a_row(file: RealFile) -> None:
    deliveries.save(file.writing, in_state(1, DeliveryState.OFFERED))

    assert file.reading(deliveries.usage) == {ATTACHMENT_ID: Usage(1, 0)}


def test_whether_it_was_shown_is_looked_up_by_its_own_id(file: RealFile) -> None:
    """However many attachments there are: this is asked for each message."""
    asked: list[str] = []
    file.opened.guard.set_trace_callback(asked.append)
    file.reading(deliveries.was_offered, AGENT_ID, MESSAGE_ID)
    file.opened.guard.set_trace_callback(None)

    (question,) = asked
    plan = file.opened.guard.execute(f"EXPLAIN QUERY PLAN {question}").fetchall()
    looks = [row[3].partition(" (")[0] for row in plan if " USING " in row[3]]
    assert not any("SCAN" in row[3] for row in plan)
    assert looks == [
        "SEARCH delivery USING INDEX delivery_by_message",
        "SEARCH attachment USING INDEX sqlite_autoindex_attachment_1",
        "SEARCH attachment USING INDEX attachment_by_agent",
        "SEARCH receipt USING COVERING INDEX sqlite_autoindex_receipt_1",
    ]
