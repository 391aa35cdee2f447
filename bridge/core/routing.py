"""Which way an offer goes to an agent now, and what a native way is handed.

Owns the choice between the routes that are open at this moment, and the shapes
that go to a native route and come back. Promises that the choice is total, that a
message which a native route refused is never offered to a native route again, and
that the person is told of waiting mail at most once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from bridge.core.ids import OfferId, SessionId
from bridge.core.records import OfferOutcome

HOOK = "hook"


class Part(Struct, frozen=True):
    """One piece of an offer's text: `head`, a message by its id, or `foot`."""

    key: str
    text: str


class Parcel(Struct, frozen=True):
    """One offer, as a native route is handed it.

    `text` is the whole offer and `nonce` the mark that only it carries; the texts
    of `parts`, a blank line between them, are `text`.
    """

    offer_id: OfferId
    session_id: SessionId
    text: str
    nonce: str
    parts: tuple[Part, ...]


class Reached(Struct, frozen=True):
    """What a native route can say of its one attempt.

    `evidence`: `native_queue` is a native queue's own yes (admitted), `seen` that
    the host showed it in the chat (confirmed), empty that bytes were written.
    `is_over`: this way leads nowhere any more; with `is_busy` only for now, since the
    chat is at work: it may be found again. `reason` is one plain sentence.
    `told`: a sentence for the person by its code, in place of the outcome's own; no
    way is used for this session then before its next attach.
    """

    outcome: OfferOutcome
    reason: str = ""
    evidence: str = ""
    is_over: bool = False
    is_busy: bool = False
    told: str = ""


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
