"""Who is asking, decided from facts that the kernel and the hosts gave.

Owns the shapes of those facts (processes, ancestry, what a host's hook said) and
the decision who a peer is; authority.py says what each may do. Promises that
every peer is somebody, that an unreadable fact grants nothing, and that nothing
a peer says about itself makes it the person.
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
    TOOL_ENDED = "tool_ended"
    TURN_ENDED = "turn_ended"
    SESSION_ENDED = "session_ended"
    OTHER = "other"


class HookInput(Struct, frozen=True):
    """What one hook said, in our words.

    `is_continuation` is the host's own word that this turn end follows one of a
    hook's continuations, and `continuations` how many it counts itself (None for a
    host that does not). `may_drain`: what is printed at this event is used; a turn
    that was interrupted or failed ends without it. `person_typed` is True only for
    an event that the host fires for typed text and for nothing else. `source` is
    how the session started (startup, resume, clear, fork) or why it ended. `mode` is
    the host's word for what its agent may do unasked, empty where it is not said.
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
    continuations: int | None = None
    may_drain: bool = True
    mode: str = ""


# ---- what the decision is made from -------------------------------------------------


class ProviderFound(Struct, frozen=True):
    """A provider's program in a chain; `at` is its place, 0 being the client.

    `shell_marks` are the variables that this provider sets for the commands of
    its agents, and neither for its hooks nor for its MCP children; `child_marks`
    those that its MCP children have as well, but no hook. `has_many_chats`:
    one process of it serves many chats, so that the process alone tells nothing.
    `is_in_process`: its hooks are code inside of that very process. `is_editor`: its
    terminals are the person's too, so that below them only a mark tells its agents.
    `is_unmarked`: what its agents start carries no mark of it.
    """

    provider: str
    at: int
    shell_marks: frozenset[str] = frozenset()
    child_marks: frozenset[str] = frozenset()
    has_many_chats: bool = False
    is_in_process: bool = False
    is_editor: bool = False
    is_unmarked: bool = False


class Evidence(Struct, frozen=True):
    """What the daemon read of one peer when it connected.

    `found` holds every provider's program in the chain, nearest first; a process
    that is attached as a script counts as one of provider `script`. `marks` go
    with the chain: for each process the names of providers' mark variables in
    the environment it was started with, None where that could not be read.
    `session_id` is the nearest provider's word for the chat of this command, as
    its module reads it from the client's own environment.
    """

    ancestry: Ancestry
    found: tuple[ProviderFound, ...] = ()
    marks: tuple[frozenset[str] | None, ...] = ()
    session_id: str = ""

    def marks_at(self, place: int) -> frozenset[str] | None:
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
    """An MCP child of this provider process; its host names the session.

    `session_id` is the host's word in the child's environment, empty without one.
    """

    provider: str
    process: ProcessFacts
    is_nested: bool = False
    session_id: str = ""


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

_SHELLS = {"sh", "bash", "dash", "ash", "ksh", "zsh"}


# ---- the decision -------------------------------------------------------------------


def hook_caller(provider: str, evidence: Evidence) -> HookCaller | Nobody:
    """Who a `hook` frame of this provider comes from."""
    found = _host_of(provider, evidence, is_hook=True)
    if isinstance(found, Nobody):
        return found
    process = evidence.ancestry.chain[found.at]
    return HookCaller(provider, process, _is_nested(found, evidence))


def child_caller(provider: str, evidence: Evidence) -> ChildCaller | Nobody:
    """Who an `mcp` frame of this provider comes from."""
    found = _host_of(provider, evidence, is_hook=False)
    if isinstance(found, Nobody):
        return found
    process = evidence.ancestry.chain[found.at]
    is_nested = _is_nested(found, evidence)
    return ChildCaller(provider, process, is_nested, evidence.session_id)


def call_caller(evidence: Evidence) -> OwnSession | Person | Nobody:
    """Who a `call` frame comes from."""
    broken = _broken_chain(evidence)
    if broken is not None:
        return broken
    if evidence.found:
        return _own_session(evidence.found[0], evidence)
    if evidence.marks_at(0) is None:
        return _unreadable("its environment could not be read")
    marked = sorted(frozenset[str]().union(*filter(None, evidence.marks)))
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


def _host_of(
    provider: str, evidence: Evidence, is_hook: bool
) -> ProviderFound | Nobody:
    """The provider program that this hook or MCP child belongs to."""
    broken = _broken_chain(evidence)
    if broken is not None:
        return broken
    nearest = evidence.found[0] if evidence.found else None
    if nearest is None or nearest.provider != provider:
        return _not_its_host(provider, "it does not run below that program")
    if provider != "script" and not _is_direct(nearest, evidence.ancestry):
        return _not_its_host(provider, "that program did not start it itself")
    wrong = nearest.shell_marks | (nearest.child_marks if is_hook else frozenset())
    for place in range(nearest.at):
        marks = evidence.marks_at(place)
        if marks is None or marks & wrong:
            return _not_its_host(provider, "a shell command of an agent started it")
    return nearest


def _not_its_host(provider: str, why: str) -> Nobody:
    return Nobody(
        "not_its_host",
        f"This process says that {provider} started it, but {why}. It gets nothing.",
        "Only the program's own hooks and MCP servers may speak for its chats.",
    )


def _is_direct(found: ProviderFound, ancestry: Ancestry) -> bool:
    """Started by the provider itself, or by one `sh -c` that it started.

    Or the provider itself, where its hooks run inside of it.
    """
    if found.at == 0:
        return found.is_in_process
    if found.at == 2:
        shell = ancestry.chain[1]
        options = shell.arguments[1:2]
        return shell.name in _SHELLS and options in (("-c",), ("-lc",))
    return found.at == 1


def _is_nested(found: ProviderFound, evidence: Evidence) -> bool:
    """True unless nothing above the provider speaks of another agent.

    A program that starts itself anew (Codex's terminal and its daemon) is one
    program; an agent that starts one leaves its mark in that one's environment.
    Without marks nobody can tell the two apart, and the shell between may have put
    the program in its own place. An editor above is the person's own terminal
    unless a mark says otherwise.
    """
    if evidence.marks_at(found.at) is None:
        return True
    if any(marks for marks in evidence.marks[found.at :]):
        return True
    own = found.at
    for other in evidence.found[1:]:
        if other.is_editor:
            continue
        is_itself = other.provider == found.provider and other.at == own + 1
        if not is_itself or found.is_unmarked:
            return True
        own = other.at
    return False


def _own_session(found: ProviderFound, evidence: Evidence) -> OwnSession | Nobody:
    if evidence.marks_at(0) is None:
        return _unreadable("its environment could not be read")
    if found.is_editor:
        return Nobody(
            "no_session",
            f"The app of {found.provider} has many chats and the person's terminals, "
            "so the bridge cannot tell whose command this is.",
            "Type it in the chat itself, or use a terminal outside of the app.",
        )
    if found.has_many_chats and not evidence.session_id:
        return Nobody(
            "no_session",
            f"{found.provider} did not say which of its chats this command belongs "
            "to, and the bridge does not guess.",
            "Use the agent_message tools, or ask the person to attach from a terminal.",
        )
    process = evidence.ancestry.chain[found.at]
    return OwnSession(found.provider, process, evidence.session_id)


def _description(ancestry: Ancestry) -> str:
    return " below ".join(f"{each.name} {each.pid}" for each in ancestry.chain[:3])
