"""Receipts: what a receiving agent says of a message, and telling its sender.

Owns `messages.delivery`, `messages.observed` and the numbered receipts of each
sending agent. Promises that a receipt is never lowered, that saying it again
changes nothing, that `offered` and `unsure` are observations kept apart from
receipts, and that a sender is told each rise once, in the order of its numbers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct
from sqlalchemy import Row, bindparam, insert, select, update

from bridge.server.schema import agents, messages, receipts
from bridge.server.store import Unit


class Delivery(StrEnum):
    """`offered` and `unsure` are observations; the others are receipts."""

    TYPED = "typed"
    ADMITTED = "admitted"
    PROCESSED = "processed"
    OFFERED = "offered"
    UNSURE = "unsure"


_RECEIPTS = ("stored", Delivery.TYPED, Delivery.ADMITTED, Delivery.PROCESSED)
_OBSERVATIONS = ("", Delivery.OFFERED, Delivery.UNSURE)
_TOLD = (Delivery.ADMITTED, Delivery.PROCESSED)


class Receipt(Struct, frozen=True, forbid_unknown_fields=True):
    """One sign. `at` is the bridge's wall time in seconds, kept as said."""

    message_id: str
    delivery: Delivery
    at: float
    evidence: str = ""


class Recorded(Struct, frozen=True):
    """What now holds for one message."""

    message_id: str
    delivery: str
    observed: str


class Recording(Struct, frozen=True):
    """The answer: what holds, and which ids are not of this mailbox."""

    recorded: list[Recorded]
    unknown: list[str]


_IN_MAILBOX = select(messages).where(
    messages.c.id == bindparam("message"),
    messages.c.recipient_id == bindparam("agent"),
)


def record(unit: Unit, agent_id: str, signs: list[Receipt]) -> Recording:
    """Take signs for messages in this agent's mailbox, in the order given."""
    holding: dict[str, Recorded] = {}
    unknown: dict[str, None] = {}
    for sign in signs:
        row = unit.row(_IN_MAILBOX, message=sign.message_id, agent=agent_id)
        if row is None:
            unknown[sign.message_id] = None
        else:
            holding[sign.message_id] = _take(unit, row, sign)
    return Recording(list(holding.values()), list(unknown))


def _take(unit: Unit, row: Row[Any], sign: Receipt) -> Recorded:
    if sign.delivery in _OBSERVATIONS:
        observed = _higher(_OBSERVATIONS, row.observed, sign.delivery)
        _write(unit, row.id, observed=observed)
        return Recorded(row.id, row.delivery, observed)
    delivery = _higher(_RECEIPTS, row.delivery, sign.delivery)
    if delivery != row.delivery:
        _write(
            unit,
            row.id,
            delivery=delivery,
            delivery_at=sign.at,
            evidence=sign.evidence,
        )
        if delivery in _TOLD:
            _tell(unit, row, delivery)
    return Recorded(row.id, delivery, row.observed)


def _higher(order: tuple[str, ...], held: str, said: str) -> str:
    return str(max(held, said, key=order.index))


def _write(unit: Unit, message_id: str, **values: str | float) -> None:
    unit.run(update(messages).where(messages.c.id == message_id).values(**values))


def _tell(unit: Unit, row: Row[Any], delivery: str) -> None:
    """Give the rise the sender's next receipt number; nobody to tell for a login."""
    if row.sender_id is None:
        return
    sender = agents.c.id == row.sender_id
    unit.run(
        update(agents).where(sender).values(last_receipt=agents.c.last_receipt + 1)
    )
    unit.run(
        insert(receipts).values(
            agent_id=row.sender_id,
            number=unit.value(select(agents.c.last_receipt).where(sender)),
            message_id=row.id,
            delivery=delivery,
            at=unit.now,
        )
    )
    unit.wake(row.sender_id)
