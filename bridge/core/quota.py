"""How much the journal keeps, and what goes when it must.

Owns the bounds of one bridge. Promises that a pending message is never dropped
to make room, that no attachment can take the room another is guaranteed, and
that what is retired first is what is least needed. Acknowledgements are never
asked about room.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from bridge.core.ids import AttachmentId
from bridge.core.records import Delivery, DeliveryState

RETENTION_S = 7 * 24 * 3600.0
# A stream that was stopped at the wall starts again below this part of the limits,
# so that it does not stop and start with each message.
RESUME_BELOW = 0.8

_RETIRED_BY_AGE = frozenset(
    {
        DeliveryState.OFFERED,
        DeliveryState.AMBIGUOUS,
        DeliveryState.ADMITTED,
        DeliveryState.PROCESSED,
        DeliveryState.WITHHELD,
    }
)
_UNSURE = frozenset({DeliveryState.OFFERED, DeliveryState.AMBIGUOUS})


class Limits(Struct, frozen=True):
    """The bounds: rows of one attachment, body bytes of all, the promised share."""

    rows: int = 2_000
    total_bytes: int = 32 * 1024 * 1024
    share_bytes: int = 1024 * 1024


class Usage(Struct, frozen=True):
    """How much one attachment keeps: rows, and bytes of their bodies in UTF-8."""

    rows: int = 0
    body_bytes: int = 0


def body_bytes(deliveries: Iterable[Delivery]) -> int:
    """UTF-8 bytes of the bodies that are kept."""
    return sum(
        len(delivery.body.encode("utf-8", "surrogatepass"))
        for delivery in deliveries
        if delivery.body is not None
    )


def share(count: int, limits: Limits) -> int:
    """What each of `count` attachments is guaranteed, in bytes."""
    return min(limits.share_bytes, limits.total_bytes // (count + 1))


class Holdings:
    """The body bytes that each attachment of this bridge holds, empty ones too.

    What a message costs here does not grow with the number of attachments; only
    after one came or went the shares are counted anew.
    """

    def __init__(self) -> None:
        self._held: dict[AttachmentId, int] = {}
        self._total = 0
        self._share = 0
        # What is held or guaranteed: the sum of each one's bytes, or its share.
        self._claimed = 0

    def put(self, attachment_id: AttachmentId, held_bytes: int) -> None:
        """It holds this much now."""
        self.remove(attachment_id)
        self._held[attachment_id] = held_bytes
        self._total += held_bytes
        self._claimed += max(held_bytes, self._share)

    def remove(self, attachment_id: AttachmentId) -> None:
        """It is gone; nothing when it was not there."""
        held_bytes = self._held.pop(attachment_id, None)
        if held_bytes is not None:
            self._total -= held_bytes
            self._claimed -= max(held_bytes, self._share)

    def allowance(self, attachment_id: AttachmentId, limits: Limits) -> int:
        """The body bytes that this attachment may hold now.

        Everything that the others neither hold nor are guaranteed, less one share
        for an attachment yet to come; at least the own share, as long as the total
        is not really held by others.
        """
        own = self._held.get(attachment_id)
        count = len(self._held) + (own is None)
        own_share = share(count, limits)
        self._count_shares(own_share)
        others = self._total - (own or 0)
        claimed = self._claimed - (0 if own is None else max(own, own_share))
        free = max(own_share, limits.total_bytes - claimed - own_share)
        return max(0, min(free, limits.total_bytes - others))

    def _count_shares(self, own_share: int) -> None:
        if own_share != self._share:
            self._share = own_share
            self._claimed = sum(max(held, own_share) for held in self._held.values())


def has_room(own: Usage, new_bytes: int, allowed: int, limits: Limits) -> bool:
    """May one more message be taken into an attachment that holds `own`?

    `allowed` is what it may hold, by Holdings.
    """
    return own.rows < limits.rows and own.body_bytes + new_bytes <= allowed


def may_resume(own: Usage, allowed: int, limits: Limits) -> bool:
    """May a stream that was stopped at the wall bring messages again?"""
    return not surplus_rows(own, limits) and own.body_bytes < RESUME_BELOW * allowed


def surplus_rows(own: Usage, limits: Limits) -> int:
    """How many rows have to go before a stream may bring messages again."""
    return max(0, own.rows + 1 - math.ceil(RESUME_BELOW * limits.rows))


def retire_by_age(deliveries: Iterable[Delivery], at: float) -> tuple[Delivery, ...]:
    """What is to hear Aged: settled and unsure ones older than RETENTION_S."""
    return tuple(
        delivery
        for delivery in deliveries
        if delivery.state in _RETIRED_BY_AGE and at - delivery.changed_at > RETENTION_S
    )


def retire_under_pressure(
    deliveries: Iterable[Delivery], count: int
) -> tuple[Delivery, ...]:
    """At most `count` that are to hear Pressure, the least needed first.

    Processed ones; then offered and ambiguous ones whose id the agent was told of;
    then withheld ones, and last those that the agent has and has not dealt with: it
    can still say so. Each kind oldest first.
    """
    kept = sorted(deliveries, key=lambda delivery: delivery.sequence)
    processed = [row for row in kept if row.state is DeliveryState.PROCESSED]
    named = [row for row in kept if row.state in _UNSURE and row.named]
    withheld = [row for row in kept if row.state is DeliveryState.WITHHELD]
    admitted = [row for row in kept if row.state is DeliveryState.ADMITTED]
    return tuple([*processed, *named, *withheld, *admitted][: max(0, count)])
