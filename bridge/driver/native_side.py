"""What one attachment remembers of its native way; lost at a restart.

Owns the way in use, whether it is closed for this session, and the event that
wakes the task which serves it. Promises nothing by itself: natives.py decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

from bridge.core.routing import Part
from bridge.routes.way import Way


@dataclass(slots=True)
class NativeSide:
    """See the module.

    `is_closed`: a way refused something, so none is used before the next attach.
    `why` says in one plain sentence why there is none, where there could be one.
    `parts` are the pieces of the offer that is out. `looking` is held by the one task
    that looks for a way.
    """

    way: Way | None = None
    is_closed: bool = False
    why: str = ""
    parts: tuple[Part, ...] = ()
    looking: trio.Lock = field(default_factory=trio.Lock)
    news: trio.Event = field(default_factory=trio.Event)

    def stir(self) -> None:
        """There may be something to say to the session."""
        self.news.set()
        self.news = trio.Event()
