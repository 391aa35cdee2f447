"""How a test waits for a real program: by asking again until a deadline.

Owns the only clock reads of the rig. Promises that no wait is longer than its
deadline and that a wait that fails says what it was waiting for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

T = TypeVar("T")

DEADLINE_S = 20.0
"""Ten times what the slowest of these steps took on two cores."""

_ASK_EVERY_S = 0.03


class NeverHappened(AssertionError):
    """A condition did not hold before its deadline; the text says which."""


async def wait_until(
    question: Callable[[], T], what: str, deadline_s: float = DEADLINE_S
) -> T:
    """Ask until the answer is truthy, and return it.

    `what` completes "never happened: …". Raises NeverHappened after
    `deadline_s` seconds of real time.
    """
    with trio.move_on_after(deadline_s):
        while True:
            answer = question()
            if answer:
                return answer
            await trio.sleep(_ASK_EVERY_S)
    raise NeverHappened(f"never happened: {what} (within {deadline_s:g} s)")
