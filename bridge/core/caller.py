"""Who is asking, decided from facts that the kernel and the hosts gave.

Owns the shapes of those facts: processes, ancestry, and what a host's hook
said. Promises that an unreadable fact grants nothing.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class ProcessFacts(Struct, frozen=True):
    """One process as the kernel shows it; `start` is in ticks since boot.

    `program` is the executable's path, empty where it cannot be read; `name` is
    the kernel's short name; `arguments` the command line as it was started.
    """

    pid: int
    parent_pid: int
    start: int
    name: str
    uid: int
    program: str = ""
    arguments: tuple[str, ...] = ()


class Ancestry(Struct, frozen=True):
    """A process and its parents, itself first, up to the top.

    `whole` is True when no parent was missing and none started later than its
    child; otherwise `reason` says what was wrong, and the chain grants nothing.
    """

    chain: tuple[ProcessFacts, ...]
    whole: bool
    reason: str = ""


class HookEvent(StrEnum):
    """What a host's hook event means to us, whatever the host calls it."""

    SESSION_STARTED = "session_started"
    PROMPT = "prompt"
    COMMAND = "command"
    TURN_ENDED = "turn_ended"
    SESSION_ENDED = "session_ended"
    OTHER = "other"


class HookInput(Struct, frozen=True):
    """What one hook said, in our words.

    `is_continuation` is the host's own word that this turn end follows one of a
    hook's continuations. `person_typed` is True only for an event that the host
    fires for typed text and for nothing else. `source` is how the session
    started (startup, resume, clear, fork) or why it ended.
    """

    provider: str
    event: HookEvent
    session_id: str
    prompt: str = ""
    is_subagent: bool = False
    is_continuation: bool = False
    source: str = ""
    folder: str = ""
    turn_id: str = ""
    person_typed: bool = False
