"""Which waiting messages go into one offer.

Owns the choice and nothing of the text. Promises oldest first without a gap
within what it was given, at most LIMIT messages, never more than the route
passes on whole, and that a message that could never fit is not silently kept:
it becomes a one-line notice, and that notice is its offer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from bridge.core.records import Delivery

LIMIT = 20

Fits = Callable[[tuple[Delivery, ...], tuple[Delivery, ...]], bool]


class Batch(Struct, frozen=True):
    """What one offer carries: messages shown whole, and one-line notices."""

    whole: tuple[Delivery, ...] = ()
    notices: tuple[Delivery, ...] = ()


def choose(deliveries: Sequence[Delivery], fits: Fits, limit: int = LIMIT) -> Batch:
    """The oldest messages that fit together into one offer.

    `deliveries` are the pending ones that may be shown now, oldest first.
    `fits(whole, notices)` says whether the text with exactly these is within the
    route's limit. `limit` is the most messages the route takes (1 for one that
    writes several times), never more than LIMIT.
    """
    batch = Batch()
    for delivery in deliveries[: min(limit, LIMIT)]:
        larger = _with(batch, delivery, fits)
        if larger is None:
            break
        batch = larger
    return batch


def _with(batch: Batch, delivery: Delivery, fits: Fits) -> Batch | None:
    """The batch and one more, or None when this offer has no room for it."""
    whole = (*batch.whole, delivery)
    if fits(whole, batch.notices):
        return Batch(whole, batch.notices)
    notices = (*batch.notices, delivery)
    if fits((delivery,), ()) or not fits(batch.whole, notices):
        return None
    return Batch(batch.whole, notices)
