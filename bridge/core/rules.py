"""How the three tables are written: one Rule for each state and event.

Owns the words that a table uses (`to`, `stay`, `when`) and how a rule becomes
effects. Promises that a table can be read as text: a rule names the next state
and the kinds of effects in their order, and decides nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Generic, TypeVar

from msgspec import Struct

from bridge.core.effects import Effect

State = TypeVar("State", bound=StrEnum)
Condition = Callable[[Any, Any], bool]
Maker = Callable[[Any, Any, Any], list[Effect]]


class Rule(Struct, Generic[State], frozen=True):
    """What one event does in one state.

    `next_state` is None when the record does not change. `effects` are kinds, in
    the order in which they must happen. `unless` holds a condition and the rule
    that counts when it does not hold for record and event.
    """

    next_state: State | None
    effects: tuple[type[Effect], ...]
    unless: tuple[Condition, Rule[State]] | None = None


def to(state: State, *effects: type[Effect]) -> Rule[State]:
    """The record goes to this state (or gets new facts in it), then the effects."""
    return Rule(state, effects)


def stay(*effects: type[Effect]) -> Rule[Any]:
    """The record does not change; without effects this is "nothing"."""
    return Rule(None, effects)


def when(
    condition: Condition, rule: Rule[State], otherwise: Rule[State]
) -> Rule[State]:
    """`rule` if `condition(record, event)` holds, else `otherwise`."""
    return Rule(rule.next_state, rule.effects, (condition, otherwise))


def chosen(rule: Rule[State], record: object, event: object) -> Rule[State]:
    """The rule that counts once its condition was asked."""
    if rule.unless is None:
        return rule
    condition, otherwise = rule.unless
    return rule if condition(record, event) else otherwise


def whole(*kinds: Callable[[Any], Effect]) -> dict[Any, Maker]:
    """Makers for kinds of effect that carry the next record and nothing else."""
    return {kind: partial(_whole, kind) for kind in kinds}


def made(
    rule: Rule[Any],
    makers: Mapping[type[Effect], Maker],
    before: object,
    after: object,
    event: object,
) -> list[Effect]:
    """The rule's effects, each made from the records and the event."""
    return [
        effect for kind in rule.effects for effect in makers[kind](before, after, event)
    ]


def _whole(
    kind: Callable[[Any], Effect], before: object, after: object, event: object
) -> list[Effect]:
    return [kind(after)]
