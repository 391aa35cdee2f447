"""One outgoing message: from the agent's word to the server's definite answer.

Owns the table of a submission, what a submission id may be used for again, the
order in which submissions go out, and the outbox's bounds. Promises that every
attempt carries the same submission id; that a definite answer (accepted or
refused) is final; that a submission is saved before it is written to the
server; and that within one lane nothing overtakes.

    queued -> in_flight -> accepted | refused
               |  |  |
               |  |  +-> waiting (until the server's time)   -> in_flight
               |  +----> uncertain (the answer was lost)     -> in_flight
               +-------> orphaned (the lease ended)          -> queued, if it moved
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from bridge.core.effects import (
    Answer,
    Count,
    Effect,
    ForgetSubmission,
    Refuse,
    SaveSubmission,
    Send,
    TellAgent,
)
from bridge.core.events import (
    Accepted,
    Event,
    LeaseMoved,
    LeaseRefused,
    RateLimited,
    ReplyLost,
    Sent,
    SubmissionDetached,
    SubmissionRefused,
    SubmissionRestarted,
)
from bridge.core.ids import InboxId, fold_name
from bridge.core.records import Submission, SubmissionState
from bridge.core.rules import Maker, Rule, chosen, made, stay, to, when, whole

# Bounds of one bridge's outbox; only submissions without a definite answer count.
COUNT_LIMIT = 1_000
BYTES_LIMIT = 8 * 1024 * 1024
# Answered rows stay for the agent's status question and for a repeated id.
KEPT_FOR_S = 7 * 24 * 3600.0
# A server's wait is never longer than this: more means that the clock was set back.
LONGEST_WAIT_S = 900.0
DETACHED = "detached"
LEASE_ENDED = "lease_ended"

QUEUED = SubmissionState.QUEUED
IN_FLIGHT = SubmissionState.IN_FLIGHT
UNCERTAIN = SubmissionState.UNCERTAIN
WAITING = SubmissionState.WAITING
ACCEPTED = SubmissionState.ACCEPTED
REFUSED = SubmissionState.REFUSED
ORPHANED = SubmissionState.ORPHANED

ANSWERED = frozenset({ACCEPTED, REFUSED})
_OUT_OF_LINE = frozenset({ACCEPTED, REFUSED, ORPHANED})


def _is_this_lease(record: Submission, event: LeaseRefused) -> bool:
    return event.attachment_id in ("", record.attachment_id)


def _may_return(record: Submission, event: LeaseMoved) -> bool:
    """A person who detached was shown what stays unsent: it stays unsent."""
    return record.refusal_code != DETACHED


_NOTHING = stay()
_COUNT = stay(Count)
# Crash: saved as in flight before the first byte is written, so a death in
# between sends the same id again (test_a_submission_is_saved_before_it_is_sent).
_SEND = to(IN_FLIGHT, SaveSubmission, Send)
_ACCEPT = to(ACCEPTED, SaveSubmission, Answer)
_REFUSE = to(REFUSED, SaveSubmission, Answer, TellAgent)
_ORPHAN = to(ORPHANED, SaveSubmission, Answer)
# Race: an answer to a lease that has moved meanwhile
# (test_a_late_answer_to_an_old_lease_orphans_nothing).
_ORPHAN_IF_ITS_LEASE = when(_is_this_lease, _ORPHAN, _COUNT)

TABLE: dict[SubmissionState, dict[type[Event], Rule[SubmissionState]]] = {
    QUEUED: {
        Sent: _SEND,
        Accepted: _ACCEPT,
        SubmissionRefused: _REFUSE,
        LeaseRefused: _ORPHAN_IF_ITS_LEASE,
        RateLimited: _COUNT,
        ReplyLost: _COUNT,
        SubmissionRestarted: _NOTHING,
        LeaseMoved: to(QUEUED, SaveSubmission),
        SubmissionDetached: _ORPHAN,
    },
    IN_FLIGHT: {
        Sent: _COUNT,
        Accepted: _ACCEPT,
        SubmissionRefused: _REFUSE,
        LeaseRefused: _ORPHAN_IF_ITS_LEASE,
        RateLimited: to(WAITING, SaveSubmission),
        ReplyLost: to(UNCERTAIN, SaveSubmission),
        SubmissionRestarted: to(UNCERTAIN, SaveSubmission),
        LeaseMoved: to(UNCERTAIN, SaveSubmission),
        SubmissionDetached: _ORPHAN,
    },
    UNCERTAIN: {
        Sent: _SEND,
        Accepted: _ACCEPT,
        SubmissionRefused: _REFUSE,
        LeaseRefused: _ORPHAN_IF_ITS_LEASE,
        RateLimited: to(WAITING, SaveSubmission),
        ReplyLost: _COUNT,
        SubmissionRestarted: _NOTHING,
        LeaseMoved: to(UNCERTAIN, SaveSubmission),
        SubmissionDetached: _ORPHAN,
    },
    WAITING: {
        Sent: _SEND,
        Accepted: _ACCEPT,
        SubmissionRefused: _REFUSE,
        LeaseRefused: _ORPHAN_IF_ITS_LEASE,
        RateLimited: _COUNT,
        ReplyLost: _COUNT,
        SubmissionRestarted: _NOTHING,
        LeaseMoved: to(WAITING, SaveSubmission),
        SubmissionDetached: _ORPHAN,
    },
    ACCEPTED: {
        Sent: _COUNT,
        Accepted: _COUNT,
        SubmissionRefused: _COUNT,
        LeaseRefused: _COUNT,
        RateLimited: _COUNT,
        ReplyLost: _COUNT,
        SubmissionRestarted: _NOTHING,
        LeaseMoved: to(ACCEPTED, SaveSubmission),
        SubmissionDetached: _NOTHING,
    },
    REFUSED: {
        Sent: _COUNT,
        Accepted: _COUNT,
        SubmissionRefused: _COUNT,
        LeaseRefused: _COUNT,
        RateLimited: _COUNT,
        ReplyLost: _COUNT,
        SubmissionRestarted: _NOTHING,
        LeaseMoved: to(REFUSED, SaveSubmission),
        SubmissionDetached: _NOTHING,
    },
    ORPHANED: {
        Sent: _COUNT,
        Accepted: _ACCEPT,
        SubmissionRefused: _REFUSE,
        LeaseRefused: _COUNT,
        RateLimited: _COUNT,
        ReplyLost: _COUNT,
        SubmissionRestarted: _NOTHING,
        LeaseMoved: when(_may_return, to(QUEUED, SaveSubmission), _NOTHING),
        SubmissionDetached: to(ORPHANED, SaveSubmission),
    },
}


def handle(record: Submission, event: Event) -> tuple[Submission, list[Effect]]:
    """The next record and what must happen, in order.

    On "nothing" and on effects that change no state the record is the same
    object. KeyError for an event that is not a submission's.
    """
    rule = chosen(TABLE[record.state][type(event)], record, event)
    after = record
    if rule.next_state is not None:
        after = _moved(record, event, rule.next_state)
    return after, made(rule, _MAKERS, record, after, event)


def content_hash(target: str | None, inbox_id: InboxId | None, body: str) -> str:
    """SHA-256 of where it goes and what it says; addresses compare folded."""
    kind, place = ("inbox", inbox_id) if target is None else ("to", fold_name(target))
    place_and_body = f"{kind}\0{place}\0{body}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(place_and_body).hexdigest()


def admit(
    existing: Submission | None, new: Submission, others: Iterable[Submission]
) -> tuple[Submission, list[Effect]]:
    """Whether an agent's new submission is taken.

    `existing` is the row of the same agent and submission id, `others` all rows
    of this bridge. The same id with the same content answers what holds of the
    stored one; with other content it is refused (`submission_id_reused`), and so
    is a new one that finds no room (`outbox_full`).
    """
    if existing is not None and existing.content_hash == new.content_hash:
        return existing, [Answer(existing.state.value)]
    if existing is not None:
        return existing, [Refuse("submission_id_reused", _reused(new))]
    if not has_room(others, new):
        return new, [Refuse("outbox_full", _FULL)]
    return new, [SaveSubmission(new)]


def has_room(others: Iterable[Submission], new: Submission) -> bool:
    """True if `new` keeps the outbox at or below COUNT_LIMIT and BYTES_LIMIT."""
    kept = [_bytes(record) for record in others if record.state not in ANSWERED]
    return len(kept) < COUNT_LIMIT and sum(kept) + _bytes(new) <= BYTES_LIMIT


def next_to_send(
    submissions: Iterable[Submission], now: float
) -> tuple[Submission, ...]:
    """The heads of all lanes that may go out now, lowest number first.

    `now` is wall seconds. A head that is in flight or still has to wait blocks
    its lane; an answered or orphaned submission blocks nothing.
    """
    heads: dict[tuple[str, str], Submission] = {}
    for record in sorted(submissions, key=lambda record: record.number):
        if record.state not in _OUT_OF_LINE:
            heads.setdefault((record.agent_id, record.lane), record)
    return tuple(head for head in heads.values() if _is_due(head, now))


def mark_told(record: Submission) -> tuple[Submission, list[Effect]]:
    """The offer being saved tells the agent of this refusal, or an answer did."""
    after = replace(record, told=True)
    return after, [SaveSubmission(after)]


def to_forget(submissions: Iterable[Submission], at: float) -> list[Effect]:
    """Answered rows that are older than KEPT_FOR_S or beyond the newest COUNT_LIMIT.

    A refusal that its agent has not been told of is kept.
    """
    answered = sorted(
        (record for record in submissions if record.state in ANSWERED),
        key=lambda record: record.number,
        reverse=True,
    )
    return [
        ForgetSubmission(record.submission_id, record.attachment_id)
        for place, record in enumerate(answered)
        if (place >= COUNT_LIMIT or at - record.created_at > KEPT_FOR_S)
        and (record.state is ACCEPTED or record.told)
    ]


def _bytes(record: Submission) -> int:
    body = record.body or ""
    # Asked of every open submission at each new one: most texts need no encoding.
    return len(body) if body.isascii() else len(body.encode("utf-8", "surrogatepass"))


def _is_due(record: Submission, now: float) -> bool:
    if record.state is WAITING:
        return not 0 < record.not_before - now <= LONGEST_WAIT_S
    return record.state is not IN_FLIGHT


def _moved(record: Submission, event: Event, state: SubmissionState) -> Submission:
    changes: dict[str, Any] = {"state": state, **_facts(record, event)}
    if state in ANSWERED:
        changes["body"] = None
    return replace(record, **changes)


def _facts(record: Submission, event: Event) -> dict[str, Any]:
    match event:
        case Sent():
            return {"attempts": record.attempts + 1}
        case Accepted():
            return {**_receipt(event), **_no_refusal()}
        case SubmissionRefused():
            return {"refusal_code": event.code, "refusal": event.message}
        case LeaseRefused():
            return {"refusal_code": LEASE_ENDED, "refusal": _LEASE_ENDED}
        case SubmissionDetached():
            return {"refusal_code": DETACHED, "refusal": _DETACHED}
        case RateLimited():
            return {"not_before": event.not_before}
        case LeaseMoved() if record.state is ORPHANED:
            return {"attachment_id": event.attachment_id, **_no_refusal()}
        case LeaseMoved():
            return {"attachment_id": event.attachment_id}
        case _:
            return {}


def _receipt(event: Accepted) -> dict[str, Any]:
    return {
        "message_id": event.message_id,
        "inbox_id": event.inbox_id,
        "conversation_id": event.conversation_id,
        "sequence": event.sequence,
    }


def _no_refusal() -> dict[str, Any]:
    return {"refusal_code": "", "refusal": ""}


_FULL = (
    f"The outbox is full ({COUNT_LIMIT} messages or {BYTES_LIMIT // 2**20} MiB wait"
    " for the server), so this message was not taken. Send it again with the same"
    " submission id once the server has answered some."
)
_LEASE_ENDED = (
    "The server no longer accepts this session under its name, so the message has"
    " not been sent. It goes out with the same submission id when the name is"
    " attached again."
)
_DETACHED = (
    "The session was detached before the server had answered, so the message goes"
    " no further. Attach again and send it anew if it still matters."
)


def _reused(new: Submission) -> str:
    return (
        f"Submission id {new.submission_id} was already used for another text or"
        " recipient, so this message was not taken. Use a new submission id."
    )


_MAKERS: dict[type[Effect], Maker] = {
    **whole(SaveSubmission, Send, TellAgent),
    Answer: lambda before, after, event: [Answer(after.state.value)],
    Count: lambda before, after, event: [
        Count(f"{type(event).__name__} in {before.state.value}")
    ],
}
