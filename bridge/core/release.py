"""The server's fresh word that a message may still be shown.

Owns how long such a word is good. Promises that a message is shown only with a
word at most FRESH_S old, counted from when it was asked for or arrived, on the
clock that runs during suspend; and that what was retracted is never released
again. All times here are running seconds (Clock.running).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from bridge.core.ids import MessageId

FRESH_S = 30.0
# As many as an attachment keeps rows: what was retracted is withheld at once, so
# this is only for what is on its way there.
RETRACTED_KEPT = 2_000


class Word(Struct, frozen=True):
    """The server stands by every unretracted message up to a sequence."""

    through: int
    at: float


class Releases(Struct, frozen=True):
    """What the server has said about the messages of one attachment."""

    single: Mapping[MessageId, float] = field(default_factory=dict)
    words: tuple[Word, ...] = ()
    retracted: Mapping[MessageId, None] = field(default_factory=dict)

    def is_fresh(self, message_id: MessageId, sequence: int, now: float) -> bool:
        """May this message be shown now?"""
        if message_id in self.retracted:
            return False
        said_at = self.single.get(message_id)
        if said_at is not None and _is_fresh(said_at, now):
            return True
        return any(
            sequence <= word.through and _is_fresh(word.at, now) for word in self.words
        )


def arrived(
    releases: Releases, message_ids: Iterable[MessageId], now: float
) -> Releases:
    """The stream brought the messages, live or replayed: that releases them."""
    return released(releases, message_ids, now)


def released(
    releases: Releases, message_ids: Iterable[MessageId], asked_at: float
) -> Releases:
    """The server answered that these may be shown; counts from the request."""
    single = _still_fresh(releases.single, asked_at)
    for message_id in message_ids:
        # Race: the stream may have said it later than this was asked
        # (test_an_older_answer_does_not_shorten_a_newer_word).
        said_at = single.pop(message_id, asked_at)
        single[message_id] = max(said_at, asked_at)  # in the order of their words
    return replace(releases, single=single)


def _still_fresh(
    single: Mapping[MessageId, float], now: float
) -> dict[MessageId, float]:
    """A copy; looked through only where its oldest word is no longer fresh.

    A long backlog says a word for every page, and each costs no more than a copy.
    """
    oldest = next(iter(single.values()), now)
    if _is_fresh(oldest, now):
        return dict(single)
    return {key: said_at for key, said_at in single.items() if _is_fresh(said_at, now)}


def alive(releases: Releases, through: int, now: float) -> Releases:
    """A heartbeat: the server stands by all it sent up to this sequence."""
    still_needed = tuple(
        word
        for word in releases.words
        if word.through > through and _is_fresh(word.at, now)
    )
    return replace(releases, words=(*still_needed, Word(through, now)))


def retracted(releases: Releases, message_ids: Iterable[MessageId]) -> Releases:
    """The server no longer stands by these; that is final.

    The newest RETRACTED_KEPT are remembered.
    """
    kept = [*releases.retracted, *message_ids][-RETRACTED_KEPT:]
    return replace(releases, retracted=dict.fromkeys(kept))


def resumed(releases: Releases) -> Releases:
    """The computer slept: every word is dropped, retractions stay."""
    return Releases(retracted=releases.retracted)


def _is_fresh(said_at: float, now: float) -> bool:
    return now - said_at <= FRESH_S
