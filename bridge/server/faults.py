"""How a bug of ours is named in the log.

Promises a class and a place in the code, and nothing of the request: tracebacks
with values could hold a message or a token.
"""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb


def named(error: BaseException) -> str:
    """`KeyError at mailbox.py:120`; for a group, each of its members."""
    if isinstance(error, BaseExceptionGroup):
        return ", ".join(map(named, error.exceptions))
    frames = extract_tb(error.__traceback__)
    place = (
        f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    )
    return type(error).__name__ + place
