"""Guidance comes with the first offer and again after a day, in the facts' words."""

from __future__ import annotations

import msgspec
import pytest

from bridge.core import guidance
from bridge.core.facts import FACTS
from bridge.core.render import OfferContent, render_offer
from tests.core.examples import BOB, NONCE, message
from tests.core.golden_text import golden

DAY_S = 24 * 3600.0
NOW = 1_796_000_000.0


@pytest.mark.parametrize(
    ("given_at", "due"),
    [
        (None, True),
        (NOW, False),
        (NOW - DAY_S + 1, False),
        (NOW - DAY_S, True),
        (NOW + 60, False),
        (NOW + DAY_S, True),
    ],
)
def test_guidance_is_due_at_first_and_after_24_hours(
    given_at: float | None, due: bool
) -> None:
    attachment = msgspec.structs.replace(BOB, guidance_at=given_at)

    assert guidance.is_due(attachment, NOW) is due


def test_guidance_says_the_eight_facts() -> None:
    text = guidance.text(BOB)

    assert len(FACTS) == len({fact.key for fact in FACTS}) == 8
    assert all(fact.sentence in text for fact in FACTS)
    assert golden("guidance", text) == text


def test_guidance_names_a_command_that_can_be_pasted() -> None:
    codex = msgspec.structs.replace(BOB, provider="codex")

    assert "/opt/aw bridge message ack --provider codex" in guidance.text(
        codex, "/opt/aw"
    )


def test_an_offer_with_guidance_says_it_after_the_help_line() -> None:
    content = OfferContent(BOB, NONCE, (message(),), guidance=guidance.text(BOB))
    text = render_offer(content)

    assert golden("offer_guidance", text) == text


def test_guidance_uses_no_markup() -> None:
    assert not set(guidance.text(BOB)) & set("<>&")
