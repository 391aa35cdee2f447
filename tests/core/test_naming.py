"""Which unsure ids the next offer names, and that it does so once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.effects import SaveNamed
from bridge.core.ids import AttachmentId, MessageId
from bridge.core.naming import SILENT_AFTER_S, name_again, name_once, to_be_named
from bridge.core.records import Delivery, DeliveryState

AMBIGUOUS = Delivery(
    AttachmentId("att-1"),
    MessageId("msg-1"),
    sequence=1,
    state=DeliveryState.AMBIGUOUS,
    changed_at=100.0,
)
OFFERED = replace(AMBIGUOUS, state=DeliveryState.OFFERED)


def test_an_ambiguous_id_is_named_at_once_and_only_once() -> None:
    assert to_be_named([AMBIGUOUS], at=100.0) == (AMBIGUOUS,)

    named, effects = name_once(AMBIGUOUS)

    assert effects == [SaveNamed(named)]
    assert to_be_named([named], at=9_999.0) == ()


def test_an_offered_id_is_named_after_ten_silent_minutes() -> None:
    assert to_be_named([OFFERED], at=100.0 + SILENT_AFTER_S - 1) == ()
    assert to_be_named([OFFERED], at=100.0 + SILENT_AFTER_S) == (OFFERED,)


def test_an_offer_that_was_not_emitted_leaves_its_names_to_the_next() -> None:
    named, _ = name_once(AMBIGUOUS)

    unnamed, effects = name_again(named)

    assert unnamed == AMBIGUOUS
    assert effects == [SaveNamed(AMBIGUOUS)]


@given(st.lists(st.sampled_from(DeliveryState), max_size=20))
def test_names_come_in_the_order_of_their_sequence(
    states: list[DeliveryState],
) -> None:
    records = [
        replace(AMBIGUOUS, sequence=number, state=state)
        for number, state in enumerate(states)
    ]

    named = to_be_named(reversed(records), at=1e9)

    assert [record.sequence for record in named] == [
        number
        for number, state in enumerate(states)
        if state in (DeliveryState.AMBIGUOUS, DeliveryState.OFFERED)
    ]
