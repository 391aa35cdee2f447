"""Feeds the service manager's watchdog, as long as the bridge really works.

Promises a word only from a task that has just had its turn in the event loop and
a round trip through the journal's writer: a bridge whose loop or writer stands
still says nothing, and is ended and started anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

from bridge.errors import BridgeError, StorageBroken
from bridge.service.notify import Notifier

# Two words may be lost or late before the third one would be.
_WORDS = 3


class Log(Protocol):
    """Where a word that was kept back is noted."""

    def warning(self, event: str, **values: object) -> object:
        """One line."""
        ...


async def keep_fed(
    notifier: Notifier, round_trip: Callable[[], Awaitable[None]], log: Log
) -> None:
    """Until cancelled; returns at once where nobody watches.

    `round_trip` goes through the journal's writer. Its StorageBroken is raised,
    any other BridgeError only keeps the word back.
    """
    while notifier.watchdog_s:
        try:
            await round_trip()
        except StorageBroken:
            raise
        except BridgeError as error:
            log.warning("watchdog_not_fed", code=error.code)
        else:
            await notifier.say("WATCHDOG=1")
        await trio.sleep(notifier.watchdog_s / _WORDS)
