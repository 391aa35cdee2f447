"""One incoming message in one attachment: from the stream to the receipt.

Owns the table that says what every event does in every state. Promises, over
all orders of events: a message is possibly emitted at most once; its body is
kept in pending, offering and recalled and nowhere else; it is never pending
after it may have been emitted; a receipt exists only where the agent (or a
native queue's own yes) gave one.

    none -> pending -> offering -> offered -> admitted -> processed
                          |  |        |
                          |  |        +-> ambiguous (the host's next sign denies it)
                          |  +-> ambiguous (nobody can say whether it was emitted)
                          +-> recalled (retracted while an offer of it is out)

A retraction or the end of the lease before any emission leads to withheld. What
was offered, ambiguous, acknowledged or withheld is retired in the end; then only
the watermark remembers it.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from bridge.core.effects import (
    Answer,
    AnswerNotTaken,
    Count,
    Effect,
    Emit,
    Forget,
    Refuse,
    SaveAmbiguous,
    SaveForeignReceipt,
    SaveMessage,
    SaveOffer,
    SaveOffered,
    SavePending,
    SaveRecalled,
    SaveReceipt,
    SaveWithheld,
    SendReceipt,
)
from bridge.core.events import (
    Admitted,
    Aged,
    Emitted,
    Event,
    LeaseEnded,
    NotEmitted,
    Pressure,
    Processed,
    Received,
    Restarted,
    Retracted,
    Taken,
    Unconfirmed,
    Unknown,
)
from bridge.core.records import Delivery, DeliveryState, Receipt
from bridge.core.rules import Maker, Rule, chosen, made, stay, to, when, whole

NONE = DeliveryState.NONE
PENDING = DeliveryState.PENDING
OFFERING = DeliveryState.OFFERING
RECALLED = DeliveryState.RECALLED
OFFERED = DeliveryState.OFFERED
AMBIGUOUS = DeliveryState.AMBIGUOUS
ADMITTED = DeliveryState.ADMITTED
PROCESSED = DeliveryState.PROCESSED
WITHHELD = DeliveryState.WITHHELD
RETIRED = DeliveryState.RETIRED

KEEPS_BODY = frozenset({PENDING, OFFERING, RECALLED})
_KEEPS_REASON = frozenset({RECALLED, WITHHELD})
_WITHOUT_OFFER = frozenset({PENDING, WITHHELD})


def _is_new(record: Delivery, event: Received) -> bool:
    return event.above_watermark


def _is_named(record: Delivery, event: Pressure) -> bool:
    return record.named


_NOTHING = stay()
_COUNT = stay(Count)
_NOT_TAKEN = stay(AnswerNotTaken)
_REFUSE = stay(Refuse)
_ANSWER_AGAIN = stay(Answer)
_FOREIGN = stay(SaveForeignReceipt, Answer, SendReceipt)
_ADMIT = to(ADMITTED, SaveReceipt, Answer, SendReceipt)
_PROCESS = to(PROCESSED, SaveReceipt, Answer, SendReceipt)
_OFFERED = to(OFFERED, SaveOffered)
_AMBIGUOUS = to(AMBIGUOUS, SaveAmbiguous)
_RECALLED = to(RECALLED, SaveRecalled)
_WITHHELD = to(WITHHELD, SaveWithheld)
_RETIRED = to(RETIRED, Forget)
_RETIRED_IF_NAMED = when(_is_named, _RETIRED, _NOTHING)

TABLE: dict[DeliveryState, dict[type[Event], Rule[DeliveryState]]] = {
    NONE: {
        Received: when(_is_new, to(PENDING, SaveMessage), _COUNT),
        Taken: _NOT_TAKEN,
        Emitted: _COUNT,
        NotEmitted: _COUNT,
        Unknown: _COUNT,
        Restarted: _NOTHING,
        Unconfirmed: _NOTHING,
        Admitted: _FOREIGN,
        Processed: _FOREIGN,
        Retracted: _NOTHING,
        LeaseEnded: _NOTHING,
        Aged: _NOTHING,
        Pressure: _NOTHING,
    },
    PENDING: {
        Received: _COUNT,
        # Crash: the offer is saved before it is emitted, so a death in between
        # leaves it unsure and never repeated
        # (test_an_offer_is_saved_before_it_is_emitted).
        Taken: to(OFFERING, SaveOffer, Emit),
        Emitted: _COUNT,
        NotEmitted: _COUNT,
        Unknown: _COUNT,
        Restarted: _NOTHING,
        Unconfirmed: _NOTHING,
        Admitted: _ADMIT,
        Processed: _PROCESS,
        Retracted: _WITHHELD,
        LeaseEnded: _WITHHELD,
        Aged: _NOTHING,
        Pressure: _NOTHING,
    },
    OFFERING: {
        Received: _COUNT,
        Taken: _NOT_TAKEN,
        Emitted: _OFFERED,
        NotEmitted: to(PENDING, SavePending),
        Unknown: _AMBIGUOUS,
        Restarted: _AMBIGUOUS,
        Unconfirmed: _NOTHING,
        Admitted: _ADMIT,
        Processed: _PROCESS,
        # Race: a retraction crosses an offer that is out; what the route answers
        # decides (test_a_recalled_message_that_was_not_emitted_is_withheld).
        Retracted: _RECALLED,
        LeaseEnded: _RECALLED,
        Aged: _NOTHING,
        Pressure: _NOTHING,
    },
    RECALLED: {
        Received: _COUNT,
        Taken: _NOT_TAKEN,
        Emitted: _OFFERED,
        NotEmitted: _WITHHELD,
        Unknown: _AMBIGUOUS,
        Restarted: _AMBIGUOUS,
        Unconfirmed: _NOTHING,
        Admitted: _ADMIT,
        Processed: _PROCESS,
        Retracted: _NOTHING,
        LeaseEnded: _NOTHING,
        Aged: _NOTHING,
        Pressure: _NOTHING,
    },
    OFFERED: {
        Received: _COUNT,
        Taken: _NOT_TAKEN,
        Emitted: _COUNT,
        NotEmitted: _COUNT,
        Unknown: _COUNT,
        Restarted: _NOTHING,
        Unconfirmed: _AMBIGUOUS,
        Admitted: _ADMIT,
        Processed: _PROCESS,
        Retracted: _NOTHING,
        LeaseEnded: _NOTHING,
        Aged: _RETIRED,
        Pressure: _RETIRED_IF_NAMED,
    },
    AMBIGUOUS: {
        Received: _COUNT,
        Taken: _NOT_TAKEN,
        Emitted: _COUNT,
        NotEmitted: _COUNT,
        Unknown: _COUNT,
        Restarted: _NOTHING,
        Unconfirmed: _NOTHING,
        Admitted: _ADMIT,
        Processed: _PROCESS,
        Retracted: _NOTHING,
        LeaseEnded: _NOTHING,
        Aged: _RETIRED,
        Pressure: _RETIRED_IF_NAMED,
    },
    ADMITTED: {
        Received: _COUNT,
        Taken: _NOT_TAKEN,
        Emitted: _COUNT,
        NotEmitted: _COUNT,
        Unknown: _COUNT,
        Restarted: _NOTHING,
        Unconfirmed: _NOTHING,
        Admitted: _ANSWER_AGAIN,
        Processed: _PROCESS,
        Retracted: _NOTHING,
        LeaseEnded: _NOTHING,
        Aged: _RETIRED,
        Pressure: _RETIRED,
    },
    PROCESSED: {
        Received: _COUNT,
        Taken: _NOT_TAKEN,
        Emitted: _COUNT,
        NotEmitted: _COUNT,
        Unknown: _COUNT,
        Restarted: _NOTHING,
        Unconfirmed: _NOTHING,
        Admitted: _ANSWER_AGAIN,
        Processed: _ANSWER_AGAIN,
        Retracted: _NOTHING,
        LeaseEnded: _NOTHING,
        Aged: _RETIRED,
        Pressure: _RETIRED,
    },
    WITHHELD: {
        Received: _COUNT,
        Taken: _NOT_TAKEN,
        Emitted: _COUNT,
        NotEmitted: _COUNT,
        Unknown: _COUNT,
        Restarted: _NOTHING,
        Unconfirmed: _NOTHING,
        Admitted: _REFUSE,
        Processed: _REFUSE,
        Retracted: _NOTHING,
        LeaseEnded: _NOTHING,
        Aged: _RETIRED,
        Pressure: _RETIRED,
    },
    RETIRED: {
        Received: _COUNT,
        Taken: _NOT_TAKEN,
        Emitted: _COUNT,
        NotEmitted: _COUNT,
        Unknown: _COUNT,
        Restarted: _NOTHING,
        Unconfirmed: _NOTHING,
        Admitted: _FOREIGN,
        Processed: _FOREIGN,
        Retracted: _NOTHING,
        LeaseEnded: _NOTHING,
        Aged: _NOTHING,
        Pressure: _NOTHING,
    },
}


def handle(record: Delivery, event: Event) -> tuple[Delivery, list[Effect]]:
    """The next record and what must happen, in order.

    On "nothing" and on effects that change no state the record is the same
    object. KeyError for an event that is not a delivery's.
    """
    rule = chosen(TABLE[record.state][type(event)], record, event)
    after = record
    if rule.next_state is not None:
        after = _moved(record, event, rule.next_state)
    return after, made(rule, _MAKERS, record, after, event)


def _moved(record: Delivery, event: Event, state: DeliveryState) -> Delivery:
    changes: dict[str, Any] = {"state": state, "changed_at": event.at}
    changes |= _facts(record, event)
    if state not in KEEPS_BODY:
        changes["body"] = None
    if state not in _KEEPS_REASON:
        changes["reason"] = ""
    if state in _WITHOUT_OFFER:
        changes["offer_id"] = None
    return replace(record, **changes)


def _facts(record: Delivery, event: Event) -> dict[str, Any]:
    match event:
        case Received():
            return _told_by_server(event)
        case Taken():
            return {"offer_id": event.offer_id}
        case NotEmitted():
            return {"native_closed": record.native_closed or event.native}
        case Retracted() | LeaseEnded():
            return {"reason": event.reason}
        case _:
            return {}


def _told_by_server(event: Received) -> dict[str, Any]:
    message = event.message
    return {
        "sequence": message.sequence,
        "inbox_id": message.inbox_id,
        "conversation_id": message.conversation_id,
        "sender": message.sender,
        "sender_provider": message.sender_provider,
        "sent_at": message.sent_at,
        "body": message.body,
    }


def _receipts(record: Delivery, event: Admitted | Processed) -> list[Receipt]:
    """In order: a sender never sees processed before admitted."""
    if isinstance(event, Admitted):
        kinds = ["admitted"]
    elif record.state is ADMITTED:
        kinds = ["processed"]
    else:
        kinds = ["admitted", "processed"]
    return [
        Receipt(record.attachment_id, record.message_id, kind, event.at, event.evidence)
        for kind in kinds
    ]


def _answer(after: Delivery, event: Event) -> str:
    if after.state in (ADMITTED, PROCESSED):
        return after.state.value
    return "admitted" if isinstance(event, Admitted) else "processed"


def _refusal(record: Delivery) -> str:
    return (
        f"Message {record.message_id} was withheld before it was shown"
        f" ({record.reason}), so it cannot be acknowledged. Nothing is left to do."
    )


_MAKERS: dict[type[Effect], Maker] = {
    **whole(SaveMessage, SaveOffer, SaveOffered, SavePending, SaveRecalled),
    **whole(SaveAmbiguous, SaveWithheld, Emit),
    SaveReceipt: lambda before, after, event: [
        SaveReceipt(after, receipt) for receipt in _receipts(before, event)
    ],
    SaveForeignReceipt: lambda before, after, event: [
        SaveForeignReceipt(receipt) for receipt in _receipts(before, event)
    ],
    SendReceipt: lambda before, after, event: [
        SendReceipt(receipt) for receipt in _receipts(before, event)
    ],
    Forget: lambda before, after, event: [
        Forget(after.attachment_id, after.message_id)
    ],
    Answer: lambda before, after, event: [Answer(_answer(after, event))],
    AnswerNotTaken: lambda before, after, event: [AnswerNotTaken()],
    Refuse: lambda before, after, event: [Refuse("withheld", _refusal(before))],
    Count: lambda before, after, event: [
        Count(f"{type(event).__name__} in {before.state.value}")
    ],
}
