"""Reading a machine's effects: their kinds, and whether saves come first."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.core.effects import (
    Answer,
    Effect,
    Emit,
    Save,
    Send,
    SendReceipt,
)

_PROTECTED = (Emit, Answer, Send, SendReceipt)


def kinds(effects: Iterable[Effect]) -> str:
    """The names of the effects' kinds in order, with spaces between."""
    return " ".join(type(effect).__name__ for effect in effects)


def saves_come_first(effects: Iterable[Effect]) -> bool:
    """True if nothing visible stands before a save."""
    visible = False
    for effect in effects:
        if isinstance(effect, Save) and visible:
            return False
        visible = visible or isinstance(effect, _PROTECTED)
    return True
