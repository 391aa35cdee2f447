"""Which messages go into one offer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.batch import LIMIT, Batch, Fits, choose
from bridge.core.ids import AttachmentId, MessageId
from bridge.core.records import Delivery, DeliveryState

HEADER = 10
NOTICE = 5


def waiting(*sizes: int) -> list[Delivery]:
    return [
        Delivery(
            AttachmentId("att-1"),
            MessageId(f"msg-{number}"),
            sequence=number,
            state=DeliveryState.PENDING,
            body="x" * size,
        )
        for number, size in enumerate(sizes, start=1)
    ]


def within(limit: int) -> Fits:
    def fits(whole: tuple[Delivery, ...], notices: tuple[Delivery, ...]) -> bool:
        bodies = sum(len(delivery.body or "") for delivery in whole)
        return HEADER + bodies + NOTICE * len(notices) <= limit

    return fits


def numbers(deliveries: tuple[Delivery, ...]) -> list[int]:
    return [delivery.sequence for delivery in deliveries]


def test_no_mail_is_an_empty_batch() -> None:
    assert choose([], within(100)) == Batch()


def test_everything_that_fits_goes_together() -> None:
    batch = choose(waiting(10, 20, 30), within(70))

    assert numbers(batch.whole) == [1, 2, 3]
    assert batch.notices == ()


def test_what_fits_only_alone_waits_for_the_next_offer_and_nothing_overtakes() -> None:
    batch = choose(waiting(10, 85, 1), within(100))

    assert numbers(batch.whole) == [1]
    assert batch.notices == ()


@pytest.mark.parametrize(("size", "is_whole"), [(89, True), (90, True), (91, False)])
def test_a_message_that_could_never_fit_becomes_a_notice(
    size: int, is_whole: bool
) -> None:
    batch = choose(waiting(size), within(100))

    assert numbers(batch.whole) == ([1] if is_whole else [])
    assert numbers(batch.notices) == ([] if is_whole else [1])


def test_messages_after_a_notice_still_go() -> None:
    batch = choose(waiting(20, 500, 20), within(100))

    assert numbers(batch.whole) == [1, 3]
    assert numbers(batch.notices) == [2]


def test_a_notice_without_room_waits() -> None:
    batch = choose(waiting(88, 500, 1), within(100))

    assert numbers(batch.whole) == [1]
    assert batch.notices == ()


def test_a_batch_holds_at_most_twenty_messages() -> None:
    many = waiting(*[1] * 21)

    assert len(choose(many, within(1_000)).whole) == 20
    assert len(choose(many, within(1_000), limit=50).whole) == 20
    assert len(choose(many, within(1_000), limit=1).whole) == 1


@given(
    st.lists(st.integers(min_value=1, max_value=150), max_size=30),
    st.integers(min_value=HEADER + NOTICE, max_value=400),
)
def test_a_batch_is_a_beginning_that_fits(sizes: list[int], limit: int) -> None:
    mail = waiting(*sizes)
    fits = within(limit)

    batch = choose(mail, fits)

    taken = sorted((*batch.whole, *batch.notices), key=lambda row: row.sequence)
    assert taken == mail[: len(taken)]
    assert len(taken) <= LIMIT
    assert fits(batch.whole, batch.notices)
    assert bool(taken) == bool(mail)
    assert all(not fits((row,), ()) for row in batch.notices)
    if len(taken) < min(len(mail), LIMIT):
        following = mail[len(taken)]
        assert not fits((*batch.whole, following), batch.notices)
