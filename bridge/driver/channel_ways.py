"""The way to a chat through its program's channel.

Promises that it leads to a chat only while that is the one which the program has
open, as its hooks and its registration say.
"""

from __future__ import annotations

from contextlib import suppress

from bridge.core.caller import ProcessFacts
from bridge.core.ids import MessageId
from bridge.core.records import DeliveryState
from bridge.driver import identity
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError
from bridge.routes.claude_channel import About, ClaudeChannel
from bridge.routes.way import Way

_ANSWERED = (DeliveryState.ADMITTED, DeliveryState.PROCESSED)


async def claude_channel(
    bridge: Bridge, queue: AttachmentQueue, facts: ProcessFacts
) -> Way | None:
    """The MCP child of this program that may push, if there is one."""
    channel = bridge.channels.get(queue.record.process_key)
    if channel is None:
        return None

    def is_current() -> bool:
        provider = queue.record.provider
        with suppress(BridgeError):
            open_now = identity.session_of_process(bridge, provider, facts)
            return open_now == queue.record.session_id
        return False

    def about(message_id: MessageId) -> About | None:
        row = queue.deliveries.get(message_id)
        if row is None:
            return None
        return About(row.sender, row.inbox_id, row.state in _ANSWERED)

    way = ClaudeChannel(f"claude+channel://{facts.pid}", channel, is_current, about)
    return way if await way.is_open() else None
