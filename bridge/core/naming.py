"""An unsure message is named, not repeated.

Owns which ids the next offer of an attachment names as perhaps not arrived, and
the bit that remembers it. Promises that an id is named at most once, except
when the offer that named it was certainly not emitted.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bridge.core.effects import Effect, SaveNamed
from bridge.core.records import Delivery, DeliveryState

# An agent that has said nothing for this long gets the id named once.
SILENT_AFTER_S = 600.0


def name_once(record: Delivery) -> tuple[Delivery, list[Effect]]:
    """The offer being saved tells the agent that this id may not have arrived."""
    after = replace(record, named=True)
    return after, [SaveNamed(after)]


def name_again(record: Delivery) -> tuple[Delivery, list[Effect]]:
    """The offer that named it was certainly not emitted: it may be named anew."""
    after = replace(record, named=False)
    return after, [SaveNamed(after)]


def to_be_named(deliveries: Iterable[Delivery], at: float) -> tuple[Delivery, ...]:
    """What the next offer names, lowest sequence first.

    That is each ambiguous id, and each offered one with no word from the agent
    for SILENT_AFTER_S seconds of wall time, unless it was named before.
    """
    found = [
        record
        for record in deliveries
        if not record.named
        and (
            record.state is DeliveryState.AMBIGUOUS
            or (
                record.state is DeliveryState.OFFERED
                and at - record.changed_at >= SILENT_AFTER_S
            )
        )
    ]
    return tuple(sorted(found, key=lambda record: record.sequence))
