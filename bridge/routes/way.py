"""What every native way to a session is.

Owns the shape and nothing else. A way makes one attempt for each offer and says
honestly what came of it; who may be offered what, and what is saved before, is
the driver's.
"""

from __future__ import annotations

from typing import Protocol

from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached


class Way(Protocol):
    """A verified native way to one exact session.

    `route` is its kind, as offers keep it; `address` the URI that people see and
    the attachment keeps; `budget` what it carries whole; `limit` the most messages
    of one offer (1 for a way that writes each message by itself).
    """

    @property
    def route(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def limit(self) -> int: ...

    async def is_open(self) -> bool:
        """Does it still lead to exactly this session? Hands nothing over."""
        ...

    async def offer(self, parcel: Parcel) -> Reached:
        """Hand the offer over in one attempt, within a deadline of its own."""
        ...
