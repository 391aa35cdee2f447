"""Claude Code's channel: what its MCP child may push into the chat by itself.

Owns the notification. Promises one for each message, with the ids by which the
agent answers it, one attempt each, and that no question of permission is relayed.
The host takes it into its own input queue and says nothing of it, not even
whether its channels are switched on (the vendor does that from afar). So a channel
is trusted with a second message only when the agent has answered a first one;
until then the rest comes by the hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from bridge.core.ids import MessageId
from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached
from bridge.core.visible import label
from bridge.errors import Unavailable, Unknown

METHOD = "notifications/claude/channel"
BUDGET = Budget("bytes", 96 * 1024)
_OURS = ("head", "foot")


class Port(Protocol):
    """The MCP session that carries it."""

    @property
    def is_open(self) -> bool:
        """The host has finished its handshake, and its child is there."""
        ...

    async def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Write one notification; Unavailable: not a byte, Unknown: perhaps."""
        ...


@dataclass
class Channel:
    """One MCP child that was asked to push, and what the agent made of it.

    `awaited` is the message that went there and was not answered when last looked.
    """

    port: Port
    awaited: MessageId | None = None
    is_proven: bool = False


class About(Struct, frozen=True):
    """What goes with a message; `is_answered`: the agent acknowledged it."""

    sender: str
    inbox_id: str
    is_answered: bool = False


class ClaudeChannel:
    """A Way through one channel to the session that its program has open.

    `is_current` verifies that anew; `about` tells of a message of this session.
    """

    route = "claude_channel"
    budget = BUDGET
    limit = 1

    def __init__(
        self,
        address: str,
        channel: Channel,
        is_current: Callable[[], bool],
        about: Callable[[MessageId], About | None],
    ) -> None:
        self.address = address
        self._channel = channel
        self._is_current = is_current
        self._about = about

    def goes_by(self, channel: Channel | None) -> bool:
        """Is it this child's?"""
        return self._channel is channel

    async def is_open(self) -> bool:
        """The same session is open, and nothing that went there is unanswered."""
        channel = self._channel
        if not (channel.port.is_open and self._is_current()):
            return False
        if channel.awaited is not None and not channel.is_proven:
            about = self._about(channel.awaited)
            channel.is_proven = about is not None and about.is_answered
        return channel.awaited is None or channel.is_proven

    async def offer(self, parcel: Parcel) -> Reached:
        """Push it; that it was written is an offer and no more."""
        message_id, meta = self._meta(parcel)
        params = {"content": parcel.text, "meta": meta}
        try:
            await self._channel.port.notify(METHOD, params)
        except Unavailable as error:
            return Reached(OfferOutcome.NOT_EMITTED, error.message, "", True)
        except Unknown as error:
            return Reached(OfferOutcome.UNKNOWN, error.message, "", True)
        self._channel.awaited = message_id or self._channel.awaited
        return Reached(OfferOutcome.EMITTED)

    def _meta(self, parcel: Parcel) -> tuple[MessageId | None, dict[str, str]]:
        """The message in it and what the host shows beside it; none for our own."""
        for part in parcel.parts:
            message_id = MessageId(part.key)
            about = None if part.key in _OURS else self._about(message_id)
            if about is not None:
                return message_id, {
                    "message_id": part.key,
                    "sender": label(about.sender),
                    "inbox_id": about.inbox_id,
                }
        return None, {}
