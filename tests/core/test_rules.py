"""How a rule is chosen and becomes effects."""

from __future__ import annotations

from bridge.core.effects import Answer, Count, Effect
from bridge.core.records import ReceiptState
from bridge.core.rules import Maker, chosen, made, stay, to, when, whole

SENT = to(ReceiptState.SENT, Answer)
STAYS = stay()
CONDITIONAL = when(lambda record, event: record == event, SENT, STAYS)


def test_a_rule_without_a_condition_is_itself() -> None:
    assert chosen(SENT, 1, 2) is SENT
    assert STAYS.next_state is None
    assert STAYS.effects == ()


def test_a_condition_chooses_between_two_rules() -> None:
    assert chosen(CONDITIONAL, 1, 1).next_state is ReceiptState.SENT
    assert chosen(CONDITIONAL, 1, 2) is STAYS


def test_effects_are_made_in_the_order_of_the_rule() -> None:
    makers: dict[type[Effect], Maker] = {
        **whole(Answer),
        Count: lambda before, after, event: [Count(before), Count(event)],
    }
    rule = to(ReceiptState.SENT, Count, Answer)

    assert made(rule, makers, "before", "after", "event") == [
        Count("before"),
        Count("event"),
        Answer("after"),
    ]
