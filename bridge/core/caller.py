"""Who is asking, decided from facts that the kernel and the hosts gave.

Owns the shapes of those facts (processes, ancestry, what a host's hook said) and
the decision who a peer is; authority.py says what each may do. Promises that
every peer is somebody, that an unreadable fact grants nothing, and that nothing
a peer says about itself makes it the person.
"""

from __future__ import annotations

from collections.abc import Mapping
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


# ---- what the decision is made from -------------------------------------------------


class ProviderFound(Struct, frozen=True):
    """A provider's program in a chain; `at` is its place, 0 being the client."""

    provider: str
    at: int


class Evidence(Struct, frozen=True):
    """What the daemon read of one peer when it connected.

    `found` holds every provider's program in the chain, nearest first; a process
    that is attached as a script counts as one of provider `script`. `marks` go
    with the chain: for each process the providers' mark variables in the
    environment it was started with, None where that could not be read.
    """

    ancestry: Ancestry
    found: tuple[ProviderFound, ...] = ()
    marks: tuple[Mapping[str, str] | None, ...] = ()

    def marks_at(self, place: int) -> Mapping[str, str] | None:
        """The marks of one process; None where they are not known."""
        return self.marks[place] if place < len(self.marks) else None


# ---- who it can be ------------------------------------------------------------------


class HookCaller(Struct, frozen=True):
    """A hook of this provider process; its host's stdin names the session.

    `is_nested`: the provider itself runs below a provider's agent, which may
    have written what looks typed.
    """

    provider: str
    process: ProcessFacts
    is_nested: bool = False


class ChildCaller(Struct, frozen=True):
    """An MCP child of this provider process; its host names the session."""

    provider: str
    process: ProcessFacts
    is_nested: bool = False


class OwnSession(Struct, frozen=True):
    """A command below a provider's program: it acts for its own session only.

    `session_id` is the host's word in the caller's environment, or empty where
    this host gives none and the process alone tells.
    """

    provider: str
    process: ProcessFacts
    session_id: str = ""


class Person(Struct, frozen=True):
    """The human, at a terminal: no provider above and no mark. For the log."""

    description: str


class Nobody(Struct, frozen=True):
    """A peer that may only be greeted; `reason` says why, `hint` what helps."""

    code: str
    reason: str
    hint: str = ""


Caller = HookCaller | ChildCaller | OwnSession | Person | Nobody

# Where a host tells its shell commands which chat they are in. All must be there
# and equal: in Codex a subagent's thread differs from its session.
_SESSION_VARIABLES = {"codex": ("CODEX_SESSION_ID", "CODEX_THREAD_ID")}
_SESSION_HINTS = {"claude": "CLAUDE_CODE_SESSION_ID"}
# Set for shell commands and not for hooks and MCP children: in Codex's shared
# daemon, whose process fits every chat, it alone tells them apart.
_SHELL_MARKS = ("CODEX_THREAD_ID",)
_SHELLS = {"sh", "bash", "dash", "ash", "ksh", "zsh"}


# ---- the decision -------------------------------------------------------------------


def hook_caller(provider: str, evidence: Evidence) -> HookCaller | Nobody:
    """Who a `hook` frame of this provider comes from."""
    found = _host_of(provider, evidence)
    if isinstance(found, Nobody):
        return found
    process = evidence.ancestry.chain[found.at]
    return HookCaller(provider, process, _is_nested(found, evidence))


def child_caller(provider: str, evidence: Evidence) -> ChildCaller | Nobody:
    """Who an `mcp` frame of this provider comes from."""
    found = _host_of(provider, evidence)
    if isinstance(found, Nobody):
        return found
    process = evidence.ancestry.chain[found.at]
    return ChildCaller(provider, process, _is_nested(found, evidence))


def call_caller(evidence: Evidence) -> OwnSession | Person | Nobody:
    """Who a `call` frame comes from."""
    broken = _broken_chain(evidence)
    if broken is not None:
        return broken
    if evidence.found:
        return _own_session(evidence.found[0], evidence)
    if evidence.marks_at(0) is None:
        return _unreadable("its environment could not be read")
    marked = sorted({name for marks in evidence.marks for name in marks or ()})
    if marked:
        return Nobody(
            "detached_from_agent",
            f"This command carries the mark of a coding agent ({', '.join(marked)}), "
            "but that agent's program is not above it, so the bridge cannot tell "
            "which chat it belongs to.",
            "Run it in that chat, or in a terminal that was not opened from one.",
        )
    return Person(_description(evidence.ancestry))


def _broken_chain(evidence: Evidence) -> Nobody | None:
    ancestry = evidence.ancestry
    if not ancestry.whole or not ancestry.chain:
        return _unreadable(ancestry.reason or "no process was seen")
    return None


def _unreadable(why: str) -> Nobody:
    return Nobody(
        "caller_unreadable",
        f"The bridge cannot see which programs started this command: {why}. "
        "So it cannot tell who asks, and does nothing for it.",
        "Run it outside of sandboxes and containers that hide processes.",
    )


def _host_of(provider: str, evidence: Evidence) -> ProviderFound | Nobody:
    """The provider program that this hook or MCP child belongs to."""
    broken = _broken_chain(evidence)
    if broken is not None:
        return broken
    nearest = evidence.found[0] if evidence.found else None
    if nearest is None or nearest.provider != provider:
        return _not_its_host(provider, "it does not run below that program")
    if provider != "script" and not _is_direct(nearest, evidence.ancestry):
        return _not_its_host(provider, "that program did not start it itself")
    for place in range(nearest.at):
        marks = evidence.marks_at(place)
        if marks is None or any(mark in marks for mark in _SHELL_MARKS):
            return _not_its_host(provider, "a shell command of an agent started it")
    return nearest


def _not_its_host(provider: str, why: str) -> Nobody:
    return Nobody(
        "not_its_host",
        f"This process says that {provider} started it, but {why}. It gets nothing.",
        "Only the program's own hooks and MCP servers may speak for its chats.",
    )


def _is_direct(found: ProviderFound, ancestry: Ancestry) -> bool:
    """Started by the provider itself, or by one `sh -c` that it started."""
    if found.at == 2:
        shell = ancestry.chain[1]
        options = shell.arguments[1:2]
        return shell.name in _SHELLS and options in (("-c",), ("-lc",))
    return found.at == 1


def _is_nested(found: ProviderFound, evidence: Evidence) -> bool:
    """True unless nothing above the provider speaks of another agent.

    A program that starts itself anew (Codex's terminal and its daemon) is one
    program; an agent that starts one leaves its mark in that one's environment.
    """
    if evidence.marks_at(found.at) is None:
        return True
    if any(marks for marks in evidence.marks[found.at :]):
        return True
    own = found.at
    for other in evidence.found[1:]:
        if other.provider != found.provider or other.at != own + 1:
            return True
        own = other.at
    return False


def _own_session(found: ProviderFound, evidence: Evidence) -> OwnSession | Nobody:
    process = evidence.ancestry.chain[found.at]
    marks = evidence.marks_at(0)
    if marks is None:
        return _unreadable("its environment could not be read")
    names = _SESSION_VARIABLES.get(found.provider)
    if names is None:
        hint = _SESSION_HINTS.get(found.provider, "")
        return OwnSession(found.provider, process, marks.get(hint, ""))
    values = [marks.get(name, "") for name in names]
    if not all(values):
        return _no_session(found.provider, names)
    if len(set(values)) > 1:
        return _subagent(found.provider)
    return OwnSession(found.provider, process, values[0])


def _no_session(provider: str, names: tuple[str, ...]) -> Nobody:
    return Nobody(
        "no_session",
        f"{provider} did not say which chat this command belongs to "
        f"({' and '.join(names)} must both be set), and the bridge does not guess.",
        "Use the agent_message tools, or ask the person to attach from a terminal.",
    )


def _subagent(provider: str) -> Nobody:
    return Nobody(
        "subagent",
        f"This command comes from a subagent of a {provider} chat. Only the chat "
        "itself can use its attachment.",
        "Report to the chat that started you.",
    )


def _description(ancestry: Ancestry) -> str:
    return " below ".join(f"{each.name} {each.pid}" for each in ancestry.chain[:3])
