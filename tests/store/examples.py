"""Records for the store's tests: fixed ones, and hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from bridge.core.ids import (
    AgentId,
    AttachmentId,
    InboxId,
    MessageId,
    OfferId,
    SessionId,
    SubmissionId,
)
from bridge.core.records import (
    Attachment,
    Delivery,
    DeliveryState,
    Offer,
    OfferOutcome,
    ProcessKey,
    Receipt,
    Submission,
)

ATTACHMENT_ID = AttachmentId("att-1")
AGENT_ID = AgentId("agent-1")
KEY = ProcessKey("0f3c-boot", 4242, 128918)
WITH_BODY = (DeliveryState.PENDING, DeliveryState.OFFERING, DeliveryState.RECALLED)

Record = TypeVar("Record", bound=msgspec.Struct)


def attachment(number: int = 1, **changes: Any) -> Attachment:
    made = Attachment(
        AttachmentId(f"att-{number}"),
        AGENT_ID,
        "bob",
        "claude",
        SessionId(f"session-{number}"),
        KEY,
        created_at=float(number),
    )
    return msgspec.structs.replace(made, **changes)


def pending(number: int, body: str = "hello", **changes: Any) -> Delivery:
    made = Delivery(
        ATTACHMENT_ID,
        MessageId(f"msg-{number}"),
        sequence=500_000_000 + number,
        inbox_id=InboxId("inbox-1"),
        sender="alice",
        state=DeliveryState.PENDING,
        body=body,
    )
    return msgspec.structs.replace(made, **changes)


def in_state(number: int, state: DeliveryState, **changes: Any) -> Delivery:
    body = "hello" if state in WITH_BODY else None
    return pending(number, state=state, **{"body": body, **changes})


def offer(number: int = 1, **changes: Any) -> Offer:
    made = Offer(
        OfferId(f"offer-{number}"),
        ATTACHMENT_ID,
        SessionId("session-1"),
        "hook",
        "a1b2c3d4e5f60718",
        float(number),
        (MessageId("msg-1"),),
    )
    return msgspec.structs.replace(made, **changes)


def receipt(number: int = 1, **changes: Any) -> Receipt:
    made = Receipt(ATTACHMENT_ID, MessageId(f"msg-{number}"), "admitted", 1.0, "agent")
    return msgspec.structs.replace(made, **changes)


def submission(number: int = 1, **changes: Any) -> Submission:
    made = Submission(
        SubmissionId(f"sub-{number}"),
        ATTACHMENT_ID,
        AGENT_ID,
        "agent:alice",
        "hash",
        number=number,
        body="hi",
        target="agent:alice",
    )
    return msgspec.structs.replace(made, **changes)


# ---- any record --------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TIMES = st.floats(allow_nan=False, allow_infinity=False, min_value=0, max_value=1e12)
WHOLE = st.integers(0, 2**63 - 1)
MAYBE_TIME = st.none() | TIMES
IDS = st.lists(TEXT.map(MessageId), max_size=5).map(tuple)


@dataclass(frozen=True)
class Kind:
    """One record type and a strategy for every record that may be saved."""

    record: type[msgspec.Struct]
    strategy: st.SearchStrategy[Any]


def _any(record: Callable[..., Record], **fields: Any) -> st.SearchStrategy[Record]:
    return st.builds(record, **fields)


KEYS = st.builds(ProcessKey, TEXT, st.integers(1, 2**22), WHOLE)

ANY_ATTACHMENT = _any(
    Attachment,
    attachment_id=st.just(ATTACHMENT_ID),
    agent_id=TEXT.map(AgentId),
    name=TEXT,
    provider=TEXT,
    session_id=TEXT.map(SessionId),
    process_key=KEYS,
    created_at=TIMES,
    watermark=WHOLE,
    offered_through=WHOLE,
    receipt_cursor=WHOLE,
    setup_at=MAYBE_TIME,
    guidance_at=MAYBE_TIME,
    offline_since=MAYBE_TIME,
    **dict.fromkeys(
        ("server", "parent_config", "made_by", "folder", "purpose", "native_route"),
        TEXT,
    ),
)

_BODIES = st.none() | TEXT
ANY_DELIVERY = _any(
    Delivery,
    attachment_id=st.just(ATTACHMENT_ID),
    message_id=TEXT.map(MessageId),
    sequence=WHOLE,
    changed_at=TIMES,
    offer_id=st.none() | TEXT.map(OfferId),
    body=_BODIES,
    state=st.sampled_from(WITH_BODY),
    **dict.fromkeys(
        (
            "inbox_id",
            "conversation_id",
            "sender",
            "sender_provider",
            "sent_at",
            "reason",
        ),
        TEXT,
    ),
    **dict.fromkeys(("named", "native_closed"), st.booleans()),
) | _any(
    Delivery,
    attachment_id=st.just(ATTACHMENT_ID),
    message_id=TEXT.map(MessageId),
    state=st.sampled_from(sorted(set(DeliveryState) - set(WITH_BODY))),
    body=st.none(),
)

ANY_OFFER = _any(
    Offer,
    offer_id=TEXT.map(OfferId),
    attachment_id=st.just(ATTACHMENT_ID),
    session_id=TEXT.map(SessionId),
    route=TEXT,
    nonce=TEXT,
    at=TIMES,
    message_ids=IDS,
    named_ids=IDS,
    outcome=st.sampled_from(OfferOutcome),
    **dict.fromkeys(
        ("setup_before", "setup_after", "guidance_before", "guidance_after"), MAYBE_TIME
    ),
)

ANY_RECEIPT = _any(
    Receipt,
    attachment_id=st.just(ATTACHMENT_ID),
    message_id=TEXT.map(MessageId),
    delivery=TEXT,
    at=TIMES,
    evidence=TEXT,
)

ANY_SUBMISSION = _any(
    Submission,
    submission_id=TEXT.map(SubmissionId),
    attachment_id=st.just(ATTACHMENT_ID),
    agent_id=TEXT.map(AgentId),
    number=WHOLE,
    body=_BODIES,
    target=_BODIES,
    inbox_id=st.none() | TEXT.map(InboxId),
    created_at=TIMES,
    not_before=TIMES,
    attempts=st.integers(0, 1000),
    message_id=st.none() | TEXT.map(MessageId),
    sequence=WHOLE,
    told=st.booleans(),
    **dict.fromkeys(
        ("lane", "content_hash", "conversation_id", "refusal_code", "refusal"), TEXT
    ),
)
