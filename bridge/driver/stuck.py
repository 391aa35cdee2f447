"""A stream that ends in nonsense at the same place, again and again.

Owns when that is often enough, and what happens then. Promises that the message
at that place is asked for by an explicit read and kept like any other, or passed
over where it is too large to keep; that the person is told; and that what is
behind it still comes.
"""

from __future__ import annotations

from bridge.core.ids import InboxId, MessageId
from bridge.core.records import Message
from bridge.driver import receiving
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError, Invalid
from bridge.upstream import api
from bridge.upstream.api import Caller
from bridge.upstream.bounded import FRAME_LIMIT_BYTES
from bridge.upstream.shapes import ReadMessage

TRIES = 3
TOLD = "stream_stuck"


class SamePlace:
    """Counts the ends of one attachment's streams that brought it no further."""

    def __init__(self) -> None:
        self._watermark = -1
        self._times = 0

    def is_stuck(self, watermark: int, error: BridgeError) -> bool:
        """True at each third nonsense in a row at this watermark."""
        if watermark != self._watermark:
            self._watermark, self._times = watermark, 0
        is_nonsense = isinstance(error, Invalid)
        self._times += is_nonsense
        return is_nonsense and self._times % TRIES == 0

    @property
    def is_news(self) -> bool:
        """True the first time that it is stuck at this place."""
        return self._times <= TRIES


async def go_past(bridge: Bridge, queue: AttachmentQueue, caller: Caller) -> None:
    """Take what stands at this place by hand; raises BridgeError when it cannot."""
    after, asked_at = queue.record.watermark, bridge.clock.running()
    page = await api.read(caller, queue.record.attachment_id, after=after, limit=1)
    for found in page.messages:
        is_large = len(found.message.encode("utf-8", "replace")) > FRAME_LIMIT_BYTES
        bridge.log.warning("gone_past", sequence=found.sequence, was_kept=not is_large)
        if is_large:
            await receiving.pass_over(queue, found.sequence)
        else:
            await receiving.receive(bridge, queue, _message(found), asked_at)


def _message(found: ReadMessage) -> Message:
    return Message(
        MessageId(found.message_id),
        found.sequence,
        InboxId(found.inbox_id),
        found.conversation_id,
        found.sender,
        found.sent_at,
        found.message,
        found.sender_provider,
    )
