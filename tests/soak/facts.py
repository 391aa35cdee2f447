"""What the books of a soak are made from.

Owns the shapes of evidence, as it was read from outside: the notes of the
scripts, the journal, the server's database, and the list of kills.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

NOWHERE = -1
"""Instead of a sequence: the journal holds no living attachment of this name."""


class Attempt(Struct, frozen=True):
    """What a sender was told once; an empty `answer` means it never heard."""

    agent: str
    submission_id: str
    answer: str
    may_be_kept: bool = True
    message_id: str = ""


class Handed(Struct, frozen=True):
    """One message in a hook's text; `is_whole` unless its body is not what was sent."""

    message_id: str
    is_whole: bool = True


class Hook(Struct, frozen=True):
    """One hook of one agent, from its start to its end.

    `once` are things said in its text that may be said once.
    """

    agent: str
    kind: str
    began: float
    ended: float
    handed: tuple[Handed, ...] = ()
    unsure: tuple[str, ...] = ()
    once: tuple[str, ...] = ()


class Ack(Struct, frozen=True):
    """An acknowledgement that was tried, and what was told."""

    agent: str
    message_id: str
    delivery: str
    answer: str = ""


class Stored(Struct, frozen=True):
    """One message at the server; `delivery` and `observed` are what it knows."""

    message_id: str
    submission_id: str
    sender: str
    recipient: str
    conversation_id: str = ""
    sequence: int = 0
    delivery: str = "stored"
    observed: str = ""
    retracted: str = ""


class Row(Struct, frozen=True):
    """One message in one attachment of the journal."""

    message_id: str
    agent: str
    state: str
    reason: str = ""
    offer_id: str = ""
    named: bool = False


class Outgoing(Struct, frozen=True):
    """One submission in the journal."""

    submission_id: str
    agent: str
    state: str
    message_id: str = ""
    code: str = ""


class Kill(Struct, frozen=True):
    """When which process was killed."""

    at: float
    which: str


class Evidence(Struct, frozen=True):
    """All that was read from outside once everything had stopped.

    `dropped` are submission ids that a detach listed to the person as never sent;
    `attached` are the names that had a living chat at the end, with the highest
    sequence that the journal had taken; `unregistered` are the names that are gone,
    and since when.
    """

    attempts: tuple[Attempt, ...] = ()
    hooks: tuple[Hook, ...] = ()
    acks: tuple[Ack, ...] = ()
    stored: tuple[Stored, ...] = ()
    rows: tuple[Row, ...] = ()
    outgoing: tuple[Outgoing, ...] = ()
    kills: tuple[Kill, ...] = ()
    dropped: frozenset[str] = frozenset()
    attached: Mapping[str, int] = {}
    unregistered: Mapping[str, float] = {}
