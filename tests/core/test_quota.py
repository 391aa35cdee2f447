"""What the journal keeps, and what goes when it must."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core import quota
from bridge.core.ids import AttachmentId, MessageId
from bridge.core.quota import (
    RETENTION_S,
    Holdings,
    Limits,
    Usage,
    body_bytes,
    retire_by_age,
    retire_under_pressure,
    share,
    surplus_rows,
)
from bridge.core.records import Delivery, DeliveryState

A, B, C = AttachmentId("a"), AttachmentId("b"), AttachmentId("c")
SMALL = Limits(rows=10, total_bytes=1_000, share_bytes=100)
ROW = Delivery(A, MessageId("msg-1"), changed_at=1_000.0)


def holding(used: Mapping[AttachmentId, Usage]) -> Holdings:
    holdings = Holdings()
    for attachment_id, usage in used.items():
        holdings.put(attachment_id, usage.body_bytes)
    return holdings


def allowance(
    used: Mapping[AttachmentId, Usage], attachment_id: AttachmentId, limits: Limits
) -> int:
    return holding(used).allowance(attachment_id, limits)


def has_room(
    used: Mapping[AttachmentId, Usage],
    attachment_id: AttachmentId,
    new_bytes: int,
    limits: Limits,
) -> bool:
    own = used.get(attachment_id, Usage())
    allowed = allowance(used, attachment_id, limits)
    return quota.has_room(own, new_bytes, allowed, limits)


def may_resume(
    used: Mapping[AttachmentId, Usage], attachment_id: AttachmentId, limits: Limits
) -> bool:
    own = used.get(attachment_id, Usage())
    return quota.may_resume(own, allowance(used, attachment_id, limits), limits)


def rows(*states: DeliveryState, named: bool = False) -> list[Delivery]:
    return [
        replace(ROW, sequence=number, state=state, named=named)
        for number, state in enumerate(states)
    ]


def test_the_limits_are_those_of_the_manual() -> None:
    limits = Limits()

    assert limits.rows == 2_000
    assert limits.total_bytes == 33_554_432
    assert share(1, limits) == 1_048_576
    assert share(63, limits) == 524_288


def test_only_bodies_count_and_in_bytes() -> None:
    assert body_bytes([replace(ROW, body="é"), ROW, replace(ROW, body="ab")]) == 4


def test_one_attachment_may_use_all_but_one_share() -> None:
    assert allowance({}, A, SMALL) == 900
    assert allowance({A: Usage(1, 50)}, A, SMALL) == 900
    assert has_room({A: Usage(1, 850)}, A, 50, SMALL)
    assert not has_room({A: Usage(1, 850)}, A, 51, SMALL)


def test_the_share_of_another_is_left_alone() -> None:
    assert allowance({A: Usage(), B: Usage()}, A, SMALL) == 800
    assert allowance({A: Usage(), B: Usage(3, 300)}, A, SMALL) == 600


def test_a_greedy_neighbour_takes_nobodys_share() -> None:
    used = {A: Usage(5, 800), B: Usage(1, 90)}

    assert has_room(used, B, 10, SMALL)
    assert not has_room(used, A, 1, SMALL)


def test_bytes_that_others_really_hold_are_nobodys_room() -> None:
    used = {A: Usage(5, 990), B: Usage()}

    assert allowance(used, B, SMALL) == 10
    assert allowance({A: Usage(5, 1_200), B: Usage()}, B, SMALL) == 0


def test_rows_are_counted_for_each_attachment() -> None:
    assert has_room({A: Usage(9, 0)}, A, 1, SMALL)
    assert not has_room({A: Usage(10, 0)}, A, 1, SMALL)
    assert has_room({A: Usage(10, 0), B: Usage()}, B, 1, SMALL)


@pytest.mark.parametrize(
    ("usage", "resumes"),
    [
        (Usage(7, 0), True),
        (Usage(8, 0), False),
        (Usage(1, 719), True),
        (Usage(1, 720), False),
    ],
)
def test_a_full_stream_resumes_below_four_fifths(usage: Usage, resumes: bool) -> None:
    assert may_resume({A: usage}, A, SMALL) is resumes


@given(
    st.lists(
        st.tuples(st.sampled_from([A, B, C]), st.integers(min_value=1, max_value=200)),
        max_size=60,
    )
)
def test_whoever_comes_first_the_total_holds_and_each_gets_a_share(
    arrivals: list[tuple[AttachmentId, int]],
) -> None:
    used = {A: Usage(), B: Usage(), C: Usage()}
    for attachment_id, size in arrivals:
        own = used[attachment_id]
        if has_room(used, attachment_id, size, SMALL):
            used[attachment_id] = Usage(own.rows + 1, own.body_bytes + size)
        else:
            is_full = own.rows >= SMALL.rows
            assert is_full or own.body_bytes + size > share(3, SMALL)

    assert sum(usage.body_bytes for usage in used.values()) <= SMALL.total_bytes
    assert all(usage.rows <= SMALL.rows for usage in used.values())


@given(
    st.lists(
        st.tuples(
            st.sampled_from([AttachmentId(f"att-{n}") for n in range(12)]),
            st.none() | st.integers(min_value=0, max_value=900),
        ),
        max_size=60,
    ),
    st.sampled_from([SMALL, Limits(10, 1_000, 400), Limits(10, 0, 10)]),
)
def test_what_is_counted_on_the_way_is_what_is_counted_anew(
    changes: list[tuple[AttachmentId, int | None]], limits: Limits
) -> None:
    holdings, kept = Holdings(), dict[AttachmentId, Usage]()
    for attachment_id, held in changes:
        if held is None:
            holdings.remove(attachment_id)
            kept.pop(attachment_id, None)
        else:
            holdings.put(attachment_id, held)
            kept[attachment_id] = Usage(1, held)
        others = [usage.body_bytes for key, usage in kept.items() if key != A]
        own_share = share(len(others) + 1, limits)
        free = limits.total_bytes - own_share - sum(max(n, own_share) for n in others)
        left = limits.total_bytes - sum(others)
        allowed = max(0, min(max(own_share, free), left))

        assert holdings.allowance(A, limits) == allowed


@pytest.mark.parametrize(("count", "surplus"), [(7, 0), (8, 1), (10, 3)])
def test_the_surplus_is_what_stands_above_four_fifths(count: int, surplus: int) -> None:
    assert surplus_rows(Usage(count, 0), SMALL) == surplus


def test_only_what_waits_is_kept_for_ever() -> None:
    old = rows(*DeliveryState)

    retired = retire_by_age(old, at=1_000.0 + RETENTION_S + 1)

    assert [row.state.value for row in retired] == [
        "offered",
        "ambiguous",
        "admitted",
        "processed",
        "withheld",
    ]
    assert retire_by_age(old, at=1_000.0 + RETENTION_S) == ()


def test_pressure_takes_processed_first_then_named_unsure_ones() -> None:
    named = rows(
        DeliveryState.AMBIGUOUS,
        DeliveryState.PROCESSED,
        DeliveryState.OFFERED,
        DeliveryState.PROCESSED,
        named=True,
    )

    found = retire_under_pressure(reversed(named), count=10)

    assert [row.sequence for row in found] == [1, 3, 0, 2]
    assert retire_under_pressure(named, count=3) == found[:3]
    assert retire_under_pressure(named, count=-1) == ()


def test_pressure_never_takes_what_waits_or_was_not_named() -> None:
    found = retire_under_pressure(rows(*DeliveryState), count=100)

    assert [row.state.value for row in found] == ["processed", "withheld", "admitted"]
