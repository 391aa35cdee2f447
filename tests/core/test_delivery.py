"""The delivery table: every pair, every order, and a small oracle beside it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from bridge.core.delivery import KEEPS_BODY, TABLE, handle
from bridge.core.effects import (
    Answer,
    Count,
    Effect,
    Emit,
    Forget,
    Refuse,
    SaveDelivery,
    SaveMessage,
    SaveReceipt,
    SendReceipt,
)
from bridge.core.events import (
    Admitted,
    Aged,
    Emitted,
    Event,
    LeaseEnded,
    NotEmitted,
    Pressure,
    Processed,
    Received,
    Restarted,
    Retracted,
    Taken,
    Unconfirmed,
    Unknown,
)
from bridge.core.ids import AttachmentId, InboxId, MessageId, OfferId
from bridge.core.records import Delivery, DeliveryState, Message
from tests.fakes.effects import kinds, saves_come_first

MESSAGE = Message(
    MessageId("msg-1"), 7, InboxId("inbox-1"), "conv-1", "alice", "now", "hello", "x"
)
FRESH = Delivery(AttachmentId("att-1"), MESSAGE.message_id)
HELD = Delivery(
    FRESH.attachment_id,
    MESSAGE.message_id,
    7,
    MESSAGE.inbox_id,
    "conv-1",
    "alice",
    "x",
    "now",
    DeliveryState.PENDING,
    "hello",
)
EVENTS: list[Event] = [
    Received(5.0, MESSAGE, True),
    Taken(5.0, OfferId("offer-1")),
    Emitted(5.0),
    NotEmitted(5.0),
    Unknown(5.0),
    Restarted(5.0),
    Unconfirmed(5.0),
    Admitted(5.0),
    Processed(5.0),
    Retracted(5.0, "sender disabled"),
    LeaseEnded(5.0, "replaced"),
    Aged(5.0),
    Pressure(5.0),
]
VARIANTS: list[Event] = [
    *EVENTS,
    Received(5.0, MESSAGE, False),
    NotEmitted(5.0, native=True),
]
ROUTE_ANSWERS = (Emitted, NotEmitted, Unknown)

# What happens in a state that has nothing of its own to say about an event.
ELSEWHERE = {
    "Received": "Count",
    "Taken": "AnswerNotTaken",
    "Emitted": "Count",
    "NotEmitted": "Count",
    "Unknown": "Count",
}
FOREIGN = "SaveForeignReceipt Answer SendReceipt"
FOREIGN_BOTH = "SaveForeignReceipt SaveForeignReceipt Answer SendReceipt SendReceipt"
ADMIT = "admitted: SaveReceipt Answer SendReceipt"
PROCESS = "processed: SaveReceipt SaveReceipt Answer SendReceipt SendReceipt"
EXPECTED = {
    "none": {
        "Received": "pending: SaveMessage",
        "Admitted": FOREIGN,
        "Processed": FOREIGN_BOTH,
    },
    "pending": {
        "Taken": "offering: SaveOffer Emit",
        "Admitted": ADMIT,
        "Processed": PROCESS,
        "Retracted": "withheld: SaveWithheld",
        "LeaseEnded": "withheld: SaveWithheld",
    },
    "offering": {
        "Emitted": "offered: SaveOffered",
        "NotEmitted": "pending: SavePending",
        "Unknown": "ambiguous: SaveAmbiguous",
        "Restarted": "ambiguous: SaveAmbiguous",
        "Admitted": ADMIT,
        "Processed": PROCESS,
        "Retracted": "recalled: SaveRecalled",
        "LeaseEnded": "recalled: SaveRecalled",
    },
    "recalled": {
        "Emitted": "offered: SaveOffered",
        "NotEmitted": "withheld: SaveWithheld",
        "Unknown": "ambiguous: SaveAmbiguous",
        "Restarted": "ambiguous: SaveAmbiguous",
        "Admitted": ADMIT,
        "Processed": PROCESS,
    },
    "offered": {
        "Unconfirmed": "ambiguous: SaveAmbiguous",
        "Admitted": ADMIT,
        "Processed": PROCESS,
        "Aged": "retired: Forget",
    },
    "ambiguous": {
        "Admitted": ADMIT,
        "Processed": PROCESS,
        "Aged": "retired: Forget",
    },
    "admitted": {
        "Admitted": "Answer",
        "Processed": "processed: SaveReceipt Answer SendReceipt",
        "Aged": "retired: Forget",
        "Pressure": "retired: Forget",
    },
    "processed": {
        "Admitted": "Answer",
        "Processed": "Answer",
        "Aged": "retired: Forget",
        "Pressure": "retired: Forget",
    },
    "withheld": {
        "Admitted": "Refuse",
        "Processed": "Refuse",
        "Aged": "retired: Forget",
        "Pressure": "retired: Forget",
    },
    "retired": {
        "Admitted": FOREIGN,
        "Processed": FOREIGN_BOTH,
    },
}


def in_state(state: DeliveryState) -> Delivery:
    body = "hello" if state in KEEPS_BODY else None
    return replace(HELD, state=state, body=body)


def after(*events: Event) -> Delivery:
    record = FRESH
    for event in events:
        record, _ = handle(record, event)
    return record


RECEIVED, TAKEN, *_ = EVENTS


def test_every_state_has_a_rule_for_every_event() -> None:
    assert set(TABLE) == set(DeliveryState)
    for row in TABLE.values():
        assert set(row) == {type(event) for event in EVENTS}


@pytest.mark.parametrize(
    ("state", "event"),
    list(itertools.product(DeliveryState, EVENTS)),
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else value,
)
def test_each_pair_does_what_the_design_says(
    state: DeliveryState, event: Event
) -> None:
    before = in_state(state)
    name = type(event).__name__

    record, effects = handle(before, event)

    expected = EXPECTED[state].get(name, ELSEWHERE.get(name, ""))
    moved, _, wanted = expected.rpartition(": ")
    assert record.state == (moved or state)
    assert kinds(effects) == wanted
    assert (record is before) == (not moved)
    assert saves_come_first(effects)


def test_no_order_of_events_breaks_a_rule() -> None:
    """All reachable records, with how often the message may have been emitted."""
    start = (FRESH, 0, False)
    seen = {start}
    frontier = [start]
    while frontier:
        record, emissions, is_out = frontier.pop()
        for event in VARIANTS:
            if isinstance(event, ROUTE_ANSWERS) and not is_out:
                continue
            following, effects = handle(record, event)
            count, out = emissions, is_out
            if any(isinstance(effect, Emit) for effect in effects):
                count, out = count + 1, True
            if isinstance(event, NotEmitted):
                count, out = count - 1, False
            if isinstance(event, (Emitted, Unknown, Restarted)):
                out = False
            assert count <= 1, "two possible emissions"
            assert (following.body is not None) == (following.state in KEEPS_BODY)
            assert not (following.state == "pending" and count), "offered again"
            node = (following, count, out)
            if node not in seen:
                seen.add(node)
                frontier.append(node)
    assert {record.state for record, _, _ in seen} == set(DeliveryState)


def test_a_message_at_or_below_the_watermark_is_only_counted() -> None:
    record, effects = handle(FRESH, Received(5.0, MESSAGE, False))

    assert record is FRESH
    assert effects == [Count("Received in none")]


def test_the_first_save_carries_everything_the_server_said() -> None:
    record, effects = handle(FRESH, RECEIVED)

    assert record == replace(HELD, changed_at=5.0)
    assert effects == [SaveMessage(record)]


def test_an_offer_is_saved_before_it_is_emitted() -> None:
    record, effects = handle(after(RECEIVED), TAKEN)

    assert kinds(effects) == "SaveOffer Emit"
    assert record.offer_id == "offer-1"
    assert record.body == "hello"


def test_a_recalled_message_that_was_not_emitted_is_withheld() -> None:
    record = after(RECEIVED, TAKEN, Retracted(6.0, "gone"), NotEmitted(7.0))

    assert record.state == "withheld"
    assert record.reason == "gone"
    assert record.body is None
    assert record.offer_id is None


def test_a_recalled_message_that_was_emitted_has_no_reason_left() -> None:
    record = after(RECEIVED, TAKEN, Retracted(6.0, "gone"), Emitted(7.0))

    assert record.state == "offered"
    assert record.reason == ""


def test_a_native_refusal_closes_native_routes_for_good() -> None:
    record = after(RECEIVED, TAKEN, NotEmitted(6.0, native=True))
    assert record.native_closed
    assert record.offer_id is None

    record, _ = handle(record, TAKEN)
    record, _ = handle(record, NotEmitted(8.0, native=False))
    assert record.native_closed


def test_processed_without_admitted_sends_both_receipts_in_order() -> None:
    record, effects = handle(after(RECEIVED, TAKEN, Emitted(6.0)), Processed(9.0))

    assert record.state == "processed"
    saved = [e.receipt.delivery for e in effects if isinstance(e, SaveReceipt)]
    sent = [e.receipt for e in effects if isinstance(e, SendReceipt)]
    assert saved == ["admitted", "processed"]
    assert [receipt.delivery for receipt in sent] == ["admitted", "processed"]
    assert {(r.at, r.evidence, str(r.state)) for r in sent} == {
        (9.0, "agent", "unsent")
    }
    assert Answer("processed") in effects


def test_a_native_queues_yes_is_recorded_as_its_own_evidence() -> None:
    _, effects = handle(in_state(DeliveryState.OFFERED), Admitted(9.0, "native_queue"))

    assert [e.receipt.evidence for e in effects if isinstance(e, SendReceipt)] == [
        "native_queue"
    ]


def test_a_repeated_acknowledgement_is_answered_with_what_holds() -> None:
    assert handle(in_state(DeliveryState.PROCESSED), Admitted(9.0))[1] == [
        Answer("processed")
    ]


@pytest.mark.parametrize("state", [DeliveryState.NONE, DeliveryState.RETIRED])
def test_an_id_the_journal_does_not_hold_is_still_acknowledged(
    state: DeliveryState,
) -> None:
    assert Answer("admitted") in handle(in_state(state), Admitted(9.0))[1]
    assert Answer("processed") in handle(in_state(state), Processed(9.0))[1]


def test_acknowledging_a_withheld_message_says_why_not() -> None:
    withheld = after(RECEIVED, LeaseEnded(6.0, "replaced"))

    _, effects = handle(withheld, Admitted(9.0))

    (refuse,) = effects
    assert isinstance(refuse, Refuse)
    assert refuse.code == "withheld"
    assert "msg-1" in refuse.message
    assert "(replaced)" in refuse.message


@pytest.mark.parametrize("state", [DeliveryState.OFFERED, DeliveryState.AMBIGUOUS])
def test_pressure_retires_an_unsure_message_only_once_it_was_named(
    state: DeliveryState,
) -> None:
    unnamed = in_state(state)
    assert handle(unnamed, Pressure(9.0)) == (unnamed, [])

    record, effects = handle(replace(unnamed, named=True), Pressure(9.0))
    assert record.state == "retired"
    assert effects == [Forget(unnamed.attachment_id, unnamed.message_id)]


class DeliveryMachine(RuleBasedStateMachine):
    """Drives one message; the oracle only remembers what the outside saw."""

    def __init__(self) -> None:
        super().__init__()
        self.record = FRESH
        self.at = 0.0
        self.came = self.is_out = self.shown = self.revoked = False
        self.receipts: list[str] = []
        self.retired = False

    def tell(self, event: Event) -> list[Effect]:
        self.record, effects = handle(self.record, event)
        assert saves_come_first(effects)
        for effect in effects:
            if isinstance(effect, SaveReceipt):
                self.receipts.append(effect.receipt.delivery)
            if isinstance(effect, SaveDelivery):
                assert effect.delivery == self.record
            self.retired = self.retired or isinstance(effect, Forget)
        return effects

    @rule()
    def receive(self) -> None:
        self.tell(Received(self.at, MESSAGE, not self.came))
        self.came = True

    @rule()
    def take(self) -> None:
        may_go = self.came and not (
            self.is_out or self.shown or self.revoked or self.receipts or self.retired
        )
        effects = self.tell(Taken(self.at, OfferId("offer-1")))
        assert kinds(effects) == ("SaveOffer Emit" if may_go else "AnswerNotTaken")
        self.is_out = self.is_out or may_go

    @precondition(lambda self: self.is_out)
    @rule(answer=st.sampled_from(ROUTE_ANSWERS))
    def route_answers(self, answer: type[Event]) -> None:
        self.tell(answer(self.at))
        self.is_out = False
        self.shown = self.shown or answer is not NotEmitted

    @rule()
    def restart(self) -> None:
        self.tell(Restarted(self.at))
        self.shown = self.shown or self.is_out
        self.is_out = False

    @rule(word=st.sampled_from([Admitted, Processed]))
    def acknowledge(self, word: type[Event]) -> None:
        withheld = self.revoked and not (
            self.is_out or self.shown or self.receipts or self.retired
        )
        effects = self.tell(word(self.at))
        assert (kinds(effects) == "Refuse") == (withheld and self.came)

    @rule(event=st.sampled_from([EVENTS[9], EVENTS[10]]))
    def revoke(self, event: Event) -> None:
        self.tell(event)
        self.revoked = self.revoked or (self.came and not self.shown)

    @rule(event=st.sampled_from([Unconfirmed, Pressure]))
    def other(self, event: type[Event]) -> None:
        self.tell(event(self.at))

    @precondition(lambda self: len(self.receipts) > 1)
    @rule()
    def age(self) -> None:
        self.tell(Aged(self.at))

    @invariant()
    def receipts_keep_their_order(self) -> None:
        if "processed" in self.receipts:
            assert self.receipts[0] == "admitted"

    @invariant()
    def a_body_is_kept_only_while_it_may_be_needed(self) -> None:
        assert (self.record.body is not None) == (self.record.state in KEEPS_BODY)


DeliveryMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, derandomize=True
)
TestDeliveryMachine = DeliveryMachine.TestCase
