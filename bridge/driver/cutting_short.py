"""Work that is under way when the bridge stops.

Promises that a stop waits for it a moment, and no longer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import trio

from bridge.driver.bridge import Bridge

# A stop is over within seconds, whatever another program does with what it was given.
STOP_WAIT_S = 2.0

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")


async def unless_stopped(
    bridge: Bridge,
    work: Callable[[*Arguments], Awaitable[Answer]],
    *args: *Arguments,
) -> Answer | None:
    """What `work` returns; None when the bridge stopped and it took too long then."""
    answer = None
    async with trio.open_nursery() as nursery:

        async def give_up() -> None:
            await bridge.stopping.wait()
            await trio.sleep(STOP_WAIT_S)
            nursery.cancel_scope.cancel()

        nursery.start_soon(give_up)
        answer = await work(*args)
        nursery.cancel_scope.cancel()
    return answer
