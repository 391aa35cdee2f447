"""Who is at the other end: the kernel's facts, read when a peer connects.

Owns what is particular to a provider in that question: which programs have one
chat in a process, and which hosts have an event for typed text alone. Promises
that two witnesses which disagree grant nothing.
"""

from __future__ import annotations

from bridge.core import texts
from bridge.core.authority import Refusal
from bridge.core.caller import (
    ChildCaller,
    Evidence,
    HookEvent,
    OwnSession,
    ProcessFacts,
)
from bridge.core.records import ProcessKey
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import EXIT_NOT_ALLOWED, Refused
from bridge.providers import claude, cursor, discovery, process
from bridge.providers.claude_registration import registration_of
from bridge.providers.known import provider_named


def has_one_chat(provider: str) -> bool:
    """True where one process has one chat open at a time."""
    return provider_named(provider).HAS_ONE_CHAT


def marks_typed(provider: str, facts: ProcessFacts) -> bool:
    """True where the host has an event that fires for typed text only."""
    if provider != claude.NAME:
        return provider_named(provider).IS_IN_PROCESS
    return claude.answers_command_at(version_of(provider, facts)) is HookEvent.COMMAND


def version_of(provider: str, facts: ProcessFacts) -> str:
    """The program's version by its own registration; empty where it has none."""
    if provider != claude.NAME:
        return ""
    registration = registration_of(facts, process.marks_of(facts.pid))
    return registration.version if registration is not None else ""


def evidence(bridge: Bridge, pid: int, looks_above: bool = True) -> Evidence:
    """Everything the decision needs, read now, while the peer is alive.

    Only where text could have been typed does it matter who started the provider:
    a hook of another kind need not look there.
    """
    ancestry = process.ancestry_of(pid)

    def is_script(facts: ProcessFacts) -> bool:
        found = bridge.roster.of_process(process.key_of(facts))
        return any(queue.record.provider == "script" for queue in found)

    return discovery.evidence_of(
        ancestry,
        process.marks_of,
        is_script,
        looks_above=looks_above,
    )


def session_of_process(bridge: Bridge, provider: str, facts: ProcessFacts) -> str:
    """The one chat that this process has open; raises Refused when unclear.

    Two witnesses: what its hooks said last, and its registration file. After a
    restart of the bridge no hook was heard yet and the file stands alone.
    """
    if provider == "script":
        return process.key_of(facts).text()
    heard = bridge.heard.get(process.key_of(facts), "")
    registration = registration_of(facts, process.marks_of(facts.pid))
    registered = registration.session_id if registration is not None else ""
    if heard and registered and heard != registered:
        raise Refused(
            "session_unclear",
            "This program is just changing from one chat to another, so the bridge "
            "cannot tell which one asks. Nothing was done.",
            "Try again after the next turn.",
        )
    if not (heard or registered):
        raise Refused(
            "session_unknown",
            "The bridge has not heard yet which chat this program has open.",
            "Try again after the next turn in this chat.",
        )
    return registered or heard


def own_session(bridge: Bridge, caller: OwnSession) -> str:
    """The session that a command below a provider speaks for; raises Refused."""
    if not has_one_chat(caller.provider) and caller.session_id:
        _require_heard(bridge, caller)
        return caller.session_id
    session_id = session_of_process(bridge, caller.provider, caller.process)
    if caller.session_id and caller.session_id != session_id:
        raise Refused(
            "session_unclear",
            "This shell belongs to a chat that its program has left.",
            "Run the command again in the chat that is open now.",
        )
    return session_id


def only_chat(bridge: Bridge, caller: ChildCaller) -> str:
    """The chat of Cursor's CLI, which has one at a time, by the word of its hooks.

    Empty for every other program, and where its hooks have spoken of none or, since
    the chat was changed, of several.
    """
    if caller.provider != cursor.NAME or not cursor.is_cli(caller.process):
        return ""
    key = process.key_of(caller.process)
    heard = [session_id for at, session_id in bridge.hooked if at == key]
    return heard[0] if len(heard) == 1 else ""


def _require_heard(bridge: Bridge, caller: OwnSession) -> None:
    """For Cursor it was never seen that its hooks and its shells name a chat alike."""
    heard = (process.key_of(caller.process), caller.session_id)
    if caller.provider == cursor.NAME and heard not in bridge.hooked:
        raise Refused(
            "session_unknown",
            "No hook of this Cursor program has spoken of this chat yet, so the bridge "
            "cannot tell that it is open there.",
            "Try again after the next turn in this chat.",
        )


def still_there(provider: str, session_id: str, key: ProcessKey) -> bool:
    """After a restart: the same process, with exactly this session open?

    A process that runs another program now keeps its pid and its start, and has no
    chat any more (test_a_process_that_runs_another_program_now_has_no_chat).
    """
    if not process.is_alive(key):
        return False
    if provider == "script":
        return True
    facts = process.facts_of(key.pid)
    if facts is None or not provider_named(provider).is_program(facts):
        return False
    if provider != claude.NAME:
        # An extension of ours says within seconds which chat is open, a hook at the
        # next prompt; others end (test_a_chat_that_was_left_meanwhile_is_ended).
        return True
    registration = registration_of(facts, process.marks_of(key.pid))
    return registration is not None and registration.session_id == session_id


def title(provider: str) -> str:
    """What people call this provider's program."""
    return provider_named(provider).TITLE


def check(refusal: Refusal | None) -> None:
    """Raise what the core refused."""
    if refusal is not None:
        raise Refused(
            refusal.code,
            refusal.message,
            refusal.hint,
            exit_code=EXIT_NOT_ALLOWED,
        )


def own_queue(bridge: Bridge, caller: OwnSession) -> AttachmentQueue:
    """The caller's own attachment; raises Refused with how to get one."""
    session_id = own_session(bridge, caller)
    key = process.key_of(caller.process)
    queue = bridge.roster.present(caller.provider, session_id, key)
    if queue is None:
        raise Refused(
            "not_attached",
            texts.tool_of_unattached_chat(caller.provider),
            exit_code=EXIT_NOT_ALLOWED,
        )
    queue.last_contact_at = bridge.clock.wall()
    return queue
