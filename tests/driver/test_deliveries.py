"""Rows are found by id and by state, whatever happened to them before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from bridge.core.ids import AttachmentId, MessageId
from bridge.core.records import Delivery, DeliveryState
from bridge.driver.deliveries import Deliveries


def row(number: int, state: DeliveryState, body: str | None = None) -> Delivery:
    return Delivery(
        AttachmentId("att-1"),
        MessageId(f"msg-{number}"),
        state=state,
        sequence=number,
        body=body,
    )


changes = some.lists(
    some.tuples(
        some.integers(1, 5),
        some.sampled_from(DeliveryState) | some.none(),
        some.none() | some.text(max_size=5),
    )
)


@given(changes)
def test_it_is_the_dictionary_of_what_was_put_last(
    made: list[tuple[int, DeliveryState | None, str | None]],
) -> None:
    kept, expected = Deliveries(), dict[MessageId, Delivery]()
    for number, state, body in made:
        if state is None:
            kept.forget(MessageId(f"msg-{number}"))
            expected.pop(MessageId(f"msg-{number}"), None)
        else:
            kept.put(row(number, state, body))
            expected[MessageId(f"msg-{number}")] = row(number, state, body)

    assert kept == expected
    for state in DeliveryState:
        wanted = [each for each in expected.values() if each.state is state]
        assert kept.in_state(state) == sorted(wanted, key=lambda each: each.sequence)
    assert kept.body_bytes == sum(
        len((each.body or "").encode()) for each in expected.values()
    )


def test_rows_of_several_states_come_oldest_first() -> None:
    rows = [
        row(3, DeliveryState.PENDING),
        row(1, DeliveryState.OFFERED),
        row(2, DeliveryState.PENDING),
    ]

    found = Deliveries(rows).in_state(DeliveryState.PENDING, DeliveryState.OFFERED)

    assert [each.sequence for each in found] == [1, 2, 3]
