"""How a long-lived process of ours is told to end.

Promises that being told again, at any later moment and however often, changes
nothing: it ends in order and with the code that it would have had.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

import trio

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def until_told_to_end() -> None:
    """Return at the first SIGTERM or SIGINT; all others are ignored for good."""
    told, token = trio.Event(), trio.lowlevel.current_trio_token()

    def hear(number: int, frame: FrameType | None) -> None:
        # Race: the next one may come before this line is over, and until the process
        # has gone none may end it in the middle of its closing; the interpreter's own
        # end takes every function away, but not this
        # (test_a_bridge_that_is_told_to_end_without_a_pause_ends_in_order).
        _answer_with(signal.SIG_IGN)
        token.run_sync_soon(told.set, idempotent=True)

    _answer_with(hear)
    try:
        await told.wait()
    finally:
        _answer_with(signal.SIG_IGN)


def _answer_with(
    action: Callable[[int, FrameType | None], None] | signal.Handlers,
) -> None:
    for number in _SIGNALS:
        signal.signal(number, action)
