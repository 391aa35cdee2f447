"""One attachment: a name bound to one live session, from attach to detach.

Owns the table that says what every event does in every state. Promises that
only the person's or the session's own attach leads to attached, and that a
start restores only what was attached and is verified; that a replaced, revoked
or detached attachment keeps no pending message, no open submission and no
token, whenever the bridge dies; and that each change is saved before anybody
outside can see it.

    new -> attached <-> offline (the session ended; name and messages are kept)
              |  \\-> held (until the person confirms) -> attached
              |----> replaced | revoked (the lease is over)
              +----> detaching -> detached (forgotten)
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from bridge.core.effects import (
    CloseStream,
    Effect,
    EndLease,
    EraseTokens,
    ForgetAttachment,
    OpenStream,
    OrphanSubmissions,
    Refuse,
    SaveAttachment,
    TellPerson,
    TellServerDetached,
    TellServerOffline,
)
from bridge.core.events import (
    BridgeStarted,
    BridgeStopped,
    Confirmed,
    Detach,
    DetachFinished,
    Event,
    OwnAttach,
    PersonAttach,
    ProcessGone,
    RouteFound,
    ServerHeld,
    ServerReplaced,
    ServerRevoked,
    SessionEnded,
    TokenRefused,
    Unregistered,
)
from bridge.core.records import Attachment, AttachmentState
from bridge.core.rules import Maker, Rule, chosen, made, stay, to, when, whole

NEW = AttachmentState.NEW
ATTACHED = AttachmentState.ATTACHED
OFFLINE = AttachmentState.OFFLINE
HELD = AttachmentState.HELD
REPLACED = AttachmentState.REPLACED
REVOKED = AttachmentState.REVOKED
DETACHING = AttachmentState.DETACHING
DETACHED = AttachmentState.DETACHED

_NOT_LIVE = frozenset({OFFLINE, REPLACED, REVOKED, DETACHING, DETACHED})
_LEASE_OVER = frozenset({REPLACED, REVOKED})
# In held these leave the state as it is, but nobody is there any more.
_SESSION_IS_GONE = (SessionEnded, ProcessGone, BridgeStarted)


def _is_verified(record: Attachment, event: BridgeStarted) -> bool:
    return event.verified


def _is_live(record: Attachment, event: Event) -> bool:
    return record.offline_since is None


def _is_other_route(record: Attachment, event: RouteFound) -> bool:
    return record.native_route != event.native_route


_NOTHING = stay()
_REFUSE = stay(Refuse)
_ATTACHED = to(ATTACHED, SaveAttachment, OpenStream)
_OFFLINE = to(OFFLINE, SaveAttachment, CloseStream, TellServerOffline)
_HELD = to(HELD, SaveAttachment, CloseStream, TellPerson)
_HELD_OFFLINE = when(_is_live, to(HELD, SaveAttachment), _NOTHING)
_STARTED = when(_is_verified, stay(OpenStream), _OFFLINE)
_STARTED_HELD = when(_is_verified, _NOTHING, to(HELD, SaveAttachment))
_CONFIRMED = when(_is_live, _ATTACHED, to(OFFLINE, SaveAttachment))
_TOKENS_GONE = stay(EraseTokens, TellPerson)
_ROUTE = when(_is_other_route, to(ATTACHED, SaveAttachment), _NOTHING)

_OVER = (SaveAttachment, CloseStream, EndLease, OrphanSubmissions, EraseTokens)
_REPLACED = to(REPLACED, *_OVER, TellPerson)
_REVOKED = to(REVOKED, *_OVER, TellPerson)
# Crash: the end of a lease touches many rows; a death between the first and the
# last is made good at start (AttachmentMachine dies between any two of them).
_OVER_AGAIN = stay(EndLease, OrphanSubmissions, EraseTokens)
_DETACHING = to(
    DETACHING,
    SaveAttachment,
    CloseStream,
    EndLease,
    OrphanSubmissions,
    TellServerDetached,
)
_DETACHING_AGAIN = stay(EndLease, OrphanSubmissions, TellServerDetached)
# Crash: tokens go first, since once the row is gone nobody knows of their file
# (test_tokens_are_erased_before_the_attachment_is_forgotten).
_DETACHED = to(DETACHED, EraseTokens, ForgetAttachment)
# What it showed and the server does not know must outlive it, or the name's next
# session is shown it again (test_what_a_detach_could_not_tell_is_told_by_the_next).
_LEAVING = to(REPLACED, SaveAttachment, EraseTokens)
_DETACHED_AT_ONCE = to(DETACHED, OrphanSubmissions, EraseTokens, ForgetAttachment)

TABLE: dict[AttachmentState, dict[type[Event], Rule[AttachmentState]]] = {
    NEW: {
        PersonAttach: _ATTACHED,
        OwnAttach: _ATTACHED,
        SessionEnded: _NOTHING,
        ProcessGone: _NOTHING,
        ServerReplaced: _NOTHING,
        ServerRevoked: _NOTHING,
        ServerHeld: _HELD,
        Confirmed: _NOTHING,
        BridgeStopped: _NOTHING,
        BridgeStarted: _NOTHING,
        Detach: _NOTHING,
        DetachFinished: _NOTHING,
        Unregistered: _NOTHING,
        TokenRefused: _NOTHING,
        RouteFound: _NOTHING,
    },
    ATTACHED: {
        PersonAttach: _ATTACHED,
        OwnAttach: _ATTACHED,
        SessionEnded: _OFFLINE,
        ProcessGone: _OFFLINE,
        ServerReplaced: _REPLACED,
        ServerRevoked: _REVOKED,
        ServerHeld: _HELD,
        Confirmed: _NOTHING,
        BridgeStopped: stay(CloseStream),
        BridgeStarted: _STARTED,
        Detach: _DETACHING,
        DetachFinished: _NOTHING,
        Unregistered: _REVOKED,
        TokenRefused: to(OFFLINE, SaveAttachment, CloseStream, EraseTokens, TellPerson),
        RouteFound: _ROUTE,
    },
    OFFLINE: {
        PersonAttach: _ATTACHED,
        OwnAttach: _ATTACHED,
        SessionEnded: _NOTHING,
        ProcessGone: _NOTHING,
        ServerReplaced: _REPLACED,
        ServerRevoked: _REVOKED,
        ServerHeld: _HELD,
        Confirmed: _NOTHING,
        BridgeStopped: _NOTHING,
        BridgeStarted: _NOTHING,
        Detach: _DETACHING,
        DetachFinished: _NOTHING,
        Unregistered: _REVOKED,
        TokenRefused: _TOKENS_GONE,
        RouteFound: _NOTHING,
    },
    HELD: {
        PersonAttach: to(HELD, SaveAttachment),
        OwnAttach: _REFUSE,
        SessionEnded: _HELD_OFFLINE,
        ProcessGone: _HELD_OFFLINE,
        ServerReplaced: _REPLACED,
        ServerRevoked: _REVOKED,
        ServerHeld: _NOTHING,
        Confirmed: _CONFIRMED,
        BridgeStopped: _NOTHING,
        BridgeStarted: _STARTED_HELD,
        Detach: _DETACHING,
        DetachFinished: _NOTHING,
        Unregistered: _REVOKED,
        TokenRefused: _TOKENS_GONE,
        RouteFound: _NOTHING,
    },
    REPLACED: {
        PersonAttach: _ATTACHED,
        OwnAttach: _REFUSE,
        SessionEnded: _NOTHING,
        ProcessGone: _NOTHING,
        ServerReplaced: _NOTHING,
        ServerRevoked: _NOTHING,
        ServerHeld: _NOTHING,
        Confirmed: _NOTHING,
        BridgeStopped: _NOTHING,
        BridgeStarted: _OVER_AGAIN,
        Detach: _DETACHED_AT_ONCE,
        DetachFinished: _NOTHING,
        Unregistered: _NOTHING,
        TokenRefused: _NOTHING,
        RouteFound: _NOTHING,
    },
    REVOKED: {
        PersonAttach: _ATTACHED,
        OwnAttach: _REFUSE,
        SessionEnded: _NOTHING,
        ProcessGone: _NOTHING,
        ServerReplaced: _NOTHING,
        ServerRevoked: _NOTHING,
        ServerHeld: _NOTHING,
        Confirmed: _NOTHING,
        BridgeStopped: _NOTHING,
        BridgeStarted: _OVER_AGAIN,
        Detach: _DETACHED_AT_ONCE,
        DetachFinished: _NOTHING,
        Unregistered: _NOTHING,
        TokenRefused: _NOTHING,
        RouteFound: _NOTHING,
    },
    DETACHING: {
        PersonAttach: _REFUSE,
        OwnAttach: _REFUSE,
        SessionEnded: _NOTHING,
        ProcessGone: _NOTHING,
        ServerReplaced: _LEAVING,
        ServerRevoked: _DETACHED,
        ServerHeld: _NOTHING,
        Confirmed: _NOTHING,
        BridgeStopped: _NOTHING,
        BridgeStarted: _DETACHING_AGAIN,
        Detach: stay(TellServerDetached),
        DetachFinished: _DETACHED,
        Unregistered: _DETACHED,
        TokenRefused: _NOTHING,
        RouteFound: _NOTHING,
    },
    DETACHED: {
        PersonAttach: _REFUSE,
        OwnAttach: _REFUSE,
        SessionEnded: _NOTHING,
        ProcessGone: _NOTHING,
        ServerReplaced: _NOTHING,
        ServerRevoked: _NOTHING,
        ServerHeld: _NOTHING,
        Confirmed: _NOTHING,
        BridgeStopped: _NOTHING,
        BridgeStarted: _NOTHING,
        Detach: _NOTHING,
        DetachFinished: _NOTHING,
        Unregistered: _NOTHING,
        TokenRefused: _NOTHING,
        RouteFound: _NOTHING,
    },
}


def handle(record: Attachment, event: Event) -> tuple[Attachment, list[Effect]]:
    """The next record and what must happen, in order.

    On "nothing" and on effects that change no state the record is the same
    object. KeyError for an event that is not an attachment's.
    """
    rule = chosen(TABLE[record.state][type(event)], record, event)
    after = record
    if rule.next_state is not None:
        after = _moved(record, event, rule.next_state)
    return after, made(rule, _MAKERS, record, after, event)


def _moved(record: Attachment, event: Event, state: AttachmentState) -> Attachment:
    changes: dict[str, Any] = {"state": state, **_facts(record, event)}
    if state is not ATTACHED:
        changes["native_route"] = ""
    is_first_end = record.offline_since is None or state in _LEASE_OVER
    if _ends_session(state, event) and is_first_end:
        changes["offline_since"] = event.at
    return replace(record, **changes)


def _ends_session(state: AttachmentState, event: Event) -> bool:
    return state in _NOT_LIVE or isinstance(event, _SESSION_IS_GONE)


def _facts(record: Attachment, event: Event) -> dict[str, Any]:
    match event:
        case PersonAttach() | OwnAttach():
            return _attach_facts(record, event)
        case RouteFound():
            return {"native_route": event.native_route}
        case _:
            return {}


def _attach_facts(
    record: Attachment, event: PersonAttach | OwnAttach
) -> dict[str, Any]:
    facts: dict[str, Any] = {"process_key": event.process_key, "offline_since": None}
    if event.process_key != record.process_key:
        facts["native_route"] = ""  # it led into the process that is gone
    if record.state is NEW:
        facts["made_by"] = "person" if isinstance(event, PersonAttach) else "own"
    return facts


def _code(after: Attachment, event: Event) -> str:
    """Why the lease ended or the person is told, as one stable word."""
    match event:
        case Unregistered():
            return "unregistered"
        case TokenRefused():
            return "token_refused"
        case _ if after.state is DETACHING:
            return "detached"
        case _:
            return after.state.value


_REFUSALS = {
    HELD: (
        "The attachment waits for the person's confirmation, which an agent cannot"
        " give. The person confirms by typing /agentworks attach in this chat."
    ),
    REPLACED: (
        "The name has moved to another session, and an agent cannot move it back."
        " The person can, by typing /agentworks attach in this chat."
    ),
    REVOKED: (
        "The attachment's connection was revoked, and an agent cannot renew it. The"
        " person can, by typing /agentworks attach in this chat."
    ),
    DETACHING: (
        "The session is just being detached and the server is not told yet. Attach"
        " again in a moment."
    ),
    DETACHED: "The session was detached meanwhile. Attach again.",
}

_MAKERS: dict[type[Effect], Maker] = {
    **whole(SaveAttachment, OpenStream, CloseStream, OrphanSubmissions),
    **whole(TellServerOffline, TellServerDetached, EraseTokens),
    EndLease: lambda before, after, event: [EndLease(after, _code(after, event))],
    TellPerson: lambda before, after, event: [TellPerson(_code(after, event), after)],
    ForgetAttachment: lambda before, after, event: [
        ForgetAttachment(after.attachment_id)
    ],
    Refuse: lambda before, after, event: [
        Refuse(before.state.value, _REFUSALS[before.state])
    ],
}
