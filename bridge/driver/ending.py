"""What the end of a lease does to the rows of its attachment.

Promises saves alone, so that they can be committed together with the attachment's
own new state: whatever dies, an ended lease keeps nothing that waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.core import delivery, outbox
from bridge.core.effects import Effect, EndLease, OrphanSubmissions, Save
from bridge.core.events import Event, LeaseEnded, LeaseRefused, SubmissionDetached
from bridge.core.records import Attachment, AttachmentState, Delivery, Submission

_DETACHED = (AttachmentState.DETACHING, AttachmentState.DETACHED)


def saves_of(
    effect: Effect,
    at: float,
    deliveries: Iterable[Delivery],
    submissions: Iterable[Submission],
) -> list[Save]:
    """What this effect of the attachment machine asks of the other two machines."""
    match effect:
        case EndLease(reason=reason):
            ended = LeaseEnded(at, reason)
            told = [delivery.handle(row, ended)[1] for row in deliveries]
        case OrphanSubmissions(attachment=record):
            event = _orphaning(record, at)
            told = [
                outbox.handle(row, event)[1]
                for row in submissions
                if row.attachment_id == record.attachment_id
                and row.state not in outbox.ANSWERED
            ]
        case _:
            return []
    return [each for effects in told for each in effects if isinstance(each, Save)]


def _orphaning(record: Attachment, at: float) -> Event:
    if record.state in _DETACHED:
        return SubmissionDetached(at)
    return LeaseRefused(at, record.attachment_id)
