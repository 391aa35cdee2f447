"""The receipt table, and the order in which receipts go out."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from bridge.core.effects import SaveReceiptState, SendReceipt
from bridge.core.events import Event, ReceiptRefused, ReceiptRestarted, ReceiptTaken
from bridge.core.ids import AttachmentId, MessageId
from bridge.core.receipts import TABLE, due, handle
from bridge.core.records import Receipt, ReceiptState
from tests.fakes.effects import kinds

EVENTS: list[Event] = [ReceiptTaken(5.0), ReceiptRefused(5.0), ReceiptRestarted(5.0)]
EXPECTED = {
    ("unsent", "ReceiptTaken"): "sent: SaveReceiptState",
    ("unsent", "ReceiptRefused"): "refused: SaveReceiptState",
    ("unsent", "ReceiptRestarted"): "SendReceipt",
    ("sent", "ReceiptTaken"): "Count",
    ("sent", "ReceiptRefused"): "Count",
    ("refused", "ReceiptTaken"): "Count",
    ("refused", "ReceiptRefused"): "Count",
}
SIGNS = ["offered", "unsure", "typed", "admitted", "processed", "seen later"]


def receipt(message: str = "msg-1", delivery: str = "admitted") -> Receipt:
    return Receipt(AttachmentId("att-1"), MessageId(message), delivery, at=1.0)


def test_every_state_has_a_rule_for_every_event() -> None:
    assert set(TABLE) == set(ReceiptState)
    for row in TABLE.values():
        assert set(row) == {type(event) for event in EVENTS}


@pytest.mark.parametrize(
    ("state", "event"),
    list(itertools.product(ReceiptState, EVENTS)),
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else value,
)
def test_each_pair_does_what_the_design_says(state: ReceiptState, event: Event) -> None:
    before = replace(receipt(), state=state)

    record, effects = handle(before, event)

    expected = EXPECTED.get((state.value, type(event).__name__), "")
    moved, _, wanted = expected.rpartition(": ")
    assert record.state == (moved or state)
    assert kinds(effects) == wanted
    assert (record is before) == (not moved)


def test_what_the_server_answered_is_saved_with_the_receipt() -> None:
    record, effects = handle(receipt(), ReceiptTaken(5.0))

    assert effects == [SaveReceiptState(record)]


def test_admitted_goes_out_before_processed_whatever_was_saved_first() -> None:
    rows = [
        receipt("msg-2", "processed"),
        receipt("msg-1", "admitted"),
        receipt("msg-2", "admitted"),
    ]

    assert due(rows) == [rows[2], rows[0], rows[1]]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from(SIGNS),
            st.sampled_from(ReceiptState),
        ),
        unique_by=lambda row: row[:2],
    )
)
def test_due_is_every_unsent_receipt_with_weaker_signs_first(
    rows: list[tuple[str, str, ReceiptState]],
) -> None:
    receipts = [replace(receipt(name, sign), state=state) for name, sign, state in rows]

    found = due(receipts)

    unsent = [row for row in receipts if row.state == "unsent"]
    assert sorted(map(repr, found)) == sorted(map(repr, unsent))
    for name in "abc":
        ranks = [SIGNS.index(row.delivery) for row in found if row.message_id == name]
        assert ranks == sorted(ranks)


class ReceiptMachine(RuleBasedStateMachine):
    """Receipts over a link that loses answers, to a server that keeps the best."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Receipt] = {}
        self.server: list[str] = []
        self.is_gone = False

    @rule(sign=st.sampled_from(["admitted", "processed"]))
    def give(self, sign: str) -> None:
        self.rows.setdefault("admitted", receipt())
        self.rows.setdefault(sign, receipt(delivery=sign))

    @rule(is_lost=st.booleans())
    def send(self, is_lost: bool) -> None:
        for row in due(self.rows.values()):
            if not self.is_gone:
                self.server.append(row.delivery)
            if is_lost:
                continue
            event = ReceiptRefused(1.0) if self.is_gone else ReceiptTaken(1.0)
            self.rows[row.delivery], _ = handle(row, event)

    @rule()
    def lose_the_lease(self) -> None:
        self.is_gone = True

    @rule()
    def restart(self) -> None:
        for row in self.rows.values():
            after, effects = handle(row, ReceiptRestarted(1.0))
            assert after is row
            assert effects == ([SendReceipt(row)] if row.state == "unsent" else [])

    @invariant()
    def the_server_has_what_we_say_it_has(self) -> None:
        for row in self.rows.values():
            assert row.state != "sent" or row.delivery in self.server
        if self.server:
            assert self.server[0] == "admitted"


ReceiptMachine.TestCase.settings = settings(
    max_examples=40, stateful_step_count=15, deadline=None, derandomize=True
)
TestReceiptMachine = ReceiptMachine.TestCase
