"""Which way an offer goes to an agent now.

Owns the choice between the routes that are open at this moment. Promises that
it is total, that a message which a native route refused is never offered to a
native route again, and that the person is told of waiting mail at most once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

HOOK = "hook"


class Choice(Struct, frozen=True):
    """`route` is None when the mail stays pending (and readable)."""

    route: str | None
    tells_person: bool = False


def choose(
    order: Sequence[str],
    open_now: Collection[str],
    is_native_closed: bool,
    is_idle: bool,
    was_told: bool,
) -> Choice:
    """The first open route in the provider's own order.

    `open_now` are the routes that could carry an offer at this moment: `hook`
    while a hook asks and the loop guard allows it, a native one while it is
    verified. `is_native_closed`: a native route said no to a message that waits.
    Without a route the person is told, if the session is idle (nothing will ask
    by itself) and they were not told of this mail before.
    """
    for route in order:
        if route in open_now and (route == HOOK or not is_native_closed):
            return Choice(route)
    return Choice(None, tells_person=is_idle and not was_told)
