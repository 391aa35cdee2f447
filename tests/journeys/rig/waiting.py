"""How a journey waits: by asking again until there is an answer, or a deadline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")

DEADLINE_S = 20.0
_ASK_EVERY_S = 0.01


async def until_some(
    question: Callable[[], Awaitable[T]], what: str, deadline_s: float = DEADLINE_S
) -> T:
    """Ask until the answer is truthy, and return it.

    `what` completes "never happened: ...". Raises AssertionError after
    `deadline_s` seconds of real time.
    """
    with trio.move_on_after(deadline_s):
        while True:
            answer = await question()
            if answer:
                return answer
            await trio.sleep(_ASK_EVERY_S)
    raise AssertionError(f"never happened: {what} (within {deadline_s:g} s)")
