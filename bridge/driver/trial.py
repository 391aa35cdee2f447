"""The message of a wake test on its way, as the bridge remembers it."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.core.ids import MessageId
from bridge.driver.queue import AttachmentQueue
from bridge.local.replies import WakeStep


@dataclass
class Trial:
    """`steps` are those that it has come through, in order.

    `sent_at` is in running seconds; a step's time counts from there.
    """

    queue: AttachmentQueue
    message_id: MessageId
    sent_at: float
    steps: list[WakeStep] = field(default_factory=list)
