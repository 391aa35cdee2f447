"""How a long-lived process of ours is told to end.

Promises that being told again, at any later moment and however often, changes
nothing: it ends in order and with the code that it would have had.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import trio

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def told_to_end() -> Iterator[AsyncIterator[int]]:
    """The signals that ask for an end, as they come.

    Race: after this block they are heard by nobody, and until the process has gone
    they must not end it in the middle of its closing
    (test_a_bridge_that_is_told_to_end_without_a_pause_ends_in_order). That stays so
    for the life of the process.
    """
    # Not ignored yet: what comes before the receiver is open is not thrown away by
    # the system, and what comes after it is closed ends nothing.
    _answer_with(_is_known)
    try:
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            yield signals
    finally:
        # The interpreter's own end takes every function away, but not this.
        _answer_with(signal.SIG_IGN)


def _answer_with(
    action: Callable[[int, FrameType | None], None] | signal.Handlers,
) -> None:
    for number in _SIGNALS:
        signal.signal(number, action)


def _is_known(number: int, frame: FrameType | None) -> None:
    """It is ending already."""
