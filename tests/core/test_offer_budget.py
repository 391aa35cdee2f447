"""What a batch chose is within the route's budget as it is rendered, and whole."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import batch, guidance, setup
from bridge.core.records import Delivery
from bridge.core.render import (
    Budget,
    OfferContent,
    closing_fence,
    render_offer,
    shortened,
)
from bridge.core.setup import RosterEntry
from tests.core.examples import BOB, NONCE, message, refused_submission

CLAUDE = Budget("utf16", 9_500)
CODEX = Budget("bytes", 9_500)
ROSTER = [RosterEntry(f"agent-{n:058}", "opencode", "漢" * 99) for n in range(30)]
BUDGETS = st.sampled_from([CLAUDE, CODEX])
# Bodies of every size around the limits, in letters of one to nine bytes once
# they are escaped, shown and encoded.
BODIES = st.builds(
    lambda letter, size: letter * (size // len(letter.encode())),
    st.sampled_from("a<&é漢🙂\u202e\n"),
    st.integers(1, 20_000),
)
SPOKEN = st.builds(
    OfferContent,
    st.just(BOB),
    st.just(NONCE),
    setup=st.sampled_from(["", setup.text(BOB, ROSTER)]),
    guidance=st.sampled_from(["", guidance.text(BOB)]),
    unsure=st.integers(0, 45).map(lambda n: (message(9, None),) * n),
    refused=st.integers(0, 25).map(lambda n: (refused_submission(),) * n),
)


def with_rows(
    spoken: OfferContent, whole: tuple[Delivery, ...], notices: tuple[Delivery, ...]
) -> OfferContent:
    rows = sorted((*whole, *notices), key=lambda row: row.sequence)
    large = frozenset(row.message_id for row in notices)
    return msgspec.structs.replace(spoken, messages=tuple(rows), too_large=large)


def choose(spoken: OfferContent, rows: list[Delivery], budget: Budget) -> OfferContent:
    """The offer as it would be made: own lines shortened, then messages chosen."""
    spoken = shortened(spoken, lambda content: budget.fits(render_offer(content)))
    chosen = batch.choose(
        rows,
        lambda whole, notices: budget.fits(
            render_offer(with_rows(spoken, whole, notices))
        ),
    )
    return with_rows(spoken, chosen.whole, chosen.notices)


@given(BUDGETS, SPOKEN, st.lists(BODIES, max_size=6))
def test_a_batch_never_exceeds_its_budget(
    budget: Budget, spoken: OfferContent, bodies: list[str]
) -> None:
    rows = [message(number, body) for number, body in enumerate(bodies, 1)]
    content = choose(spoken, rows, budget)
    text = render_offer(content)

    assert budget.fits(text)
    for number, row in enumerate(content.messages, 1):
        is_whole = row.message_id not in content.too_large
        assert text.count(closing_fence(NONCE, number)) == is_whole


@given(BUDGETS, SPOKEN)
def test_own_lines_alone_always_leave_an_offer(
    budget: Budget, spoken: OfferContent
) -> None:
    content = choose(spoken, [message(1, "x")], budget)

    assert content.setup == spoken.setup
    assert content.guidance == spoken.guidance
    assert content.unsure == spoken.unsure[: len(content.unsure)]
    assert content.refused == spoken.refused[: len(content.refused)]


@pytest.mark.parametrize(
    ("length", "whole"), [(8_700, True), (10_001, False), (20_000, False)]
)
@pytest.mark.parametrize("budget", [CLAUDE, CODEX])
def test_a_message_past_the_budget_becomes_a_notice(
    budget: Budget, length: int, whole: bool
) -> None:
    row = message(1, "x" * length)
    content = choose(OfferContent(BOB, NONCE), [row], budget)

    assert content.messages == (row,)
    assert (row.message_id not in content.too_large) is whole


def test_a_full_batch_of_20_fits_and_the_21st_waits() -> None:
    rows = [message(number, "short") for number in range(1, 22)]
    content = choose(OfferContent(BOB, NONCE), rows, CLAUDE)

    assert len(content.messages) == 20
    assert not content.too_large


def test_nothing_is_left_out_that_fits() -> None:
    spoken = OfferContent(
        BOB, NONCE, unsure=(message(9, None),) * 3, refused=(refused_submission(),) * 3
    )

    assert choose(spoken, [], CLAUDE) == spoken
