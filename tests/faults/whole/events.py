"""What can happen, one value per event, and how a list of them is written down.

Each event's numbers are taken modulo what there is, so that every list is a story
that can be played, and what is left of it after an event was taken out is one too.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Event(Struct, frozen=True):
    """Base of all."""


# ---- the bridge's own process ----------------------------------------------------


class Crash(Event, frozen=True):
    """The daemon dies now, and is started again."""


class CrashAtCommit(Event, frozen=True):
    """It dies as soon as its `number`-th commit from now is on the disk."""

    number: int = 1


class Restart(Event, frozen=True):
    """It is stopped in order and started again."""


class Away(Event, frozen=True):
    """It dies, and is started only after so many days."""

    days: int = 1


class Pass(Event, frozen=True):
    """Time goes by."""

    seconds: float = 1.0


class SlowDisk(Event, frozen=True):
    """From now on each commit takes so long."""

    seconds: float = 0.0


class FullDisk(Event, frozen=True):
    """The next so many commits find no room."""

    commits: int = 1


class Luck(Event, frozen=True):
    """From now on tasks that could run at the same time run in another order."""

    seed: int = 0


# ---- the message server and the way to it ----------------------------------------


class Post(Event, frozen=True):
    """Another agent's message is taken by the server; a large one fits no hook."""

    is_large: bool = False


class Swap(Event, frozen=True):
    """Two messages, which the stream brings in the wrong order."""


class Again(Event, frozen=True):
    """The stream brings a message once more, perhaps with another text."""

    message: int = 0
    is_changed: bool = False


class Retract(Event, frozen=True):
    """The server no longer stands by a message."""

    message: int = 0


class Cut(Event, frozen=True):
    """The stream breaks, perhaps in the middle of an event."""

    is_half: bool = False


class Silence(Event, frozen=True):
    """The open streams say nothing any more."""


class Rewind(Event, frozen=True):
    """The server has forgotten cursors: streams opened next begin at the start."""

    streams: int = 1


class Fault(Event, frozen=True):
    """The next requests fail: see answers.FAULTS."""

    kind: str = "unreachable"
    requests: int = 1


class SendFault(Event, frozen=True):
    """The next submission is answered like this: see answers.FAULTS."""

    kind: str = "lost"


class ServerRestart(Event, frozen=True):
    """The server starts again: its streams break, what it stored it knows."""


class Replace(Event, frozen=True):
    """Another computer takes the name, and perhaps shows all that waits."""

    shows: bool = False


# ---- the person, the host and the agent ------------------------------------------


class Attach(Event, frozen=True):
    """The person attaches one of the two chats."""

    session: int = 0


class Detach(Event, frozen=True):
    """The person detaches the name."""


class SessionEnd(Event, frozen=True):
    """The host says that a chat has ended."""

    session: int = 0


class Prompt(Event, frozen=True):
    """The person says something in a chat."""

    session: int = 0


class TurnEnd(Event, frozen=True):
    """A chat's turn ends; the hook may vanish once it was told to wait."""

    session: int = 0
    vanishes: bool = False


class Say(Event, frozen=True):
    """The hook that holds an offer ends: `word` is printed, unprinted or "".

    `is_seen`: the host really handed it to the agent.
    """

    word: str = "printed"
    is_seen: bool = True


class WayFound(Event, frozen=True):
    """The attached chat has a native way from now on."""


class WaySays(Event, frozen=True):
    """The way that holds an offer answers, as a hook's `Say`."""

    word: str = "printed"
    is_seen: bool = True


class WayGone(Event, frozen=True):
    """The way leads nowhere any more; of what it holds nothing is known."""


class Ack(Event, frozen=True):
    """The agent acknowledges a message, seen or not."""

    message: int = 0
    delivery: str = "processed"


class Read(Event, frozen=True):
    """The agent reads its mailbox by hand."""


class Send(Event, frozen=True):
    """The agent sends: the same number is the same submission id."""

    number: int = 0
    target: int = 0
    text: int = 0


def written(script: Sequence[Event]) -> str:
    """The script as it is kept in kept_scripts.py, one line per event."""
    lines = "".join(f"        {event!r},\n" for event in script)
    return f'    "say here what must hold": (\n{lines}    ),\n'
