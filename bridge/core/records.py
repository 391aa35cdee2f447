"""What is kept: the frozen records that machines change and the store saves.

Promises that a record never changes in place: a machine returns the next one,
and the driver shows it only after its commit. Times that end in `_at` are wall
seconds (display and the 7-day and 24-hour rules), never used for order.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from bridge.core.ids import (
    AgentId,
    AttachmentId,
    InboxId,
    MessageId,
    OfferId,
    SessionId,
    SubmissionId,
)


class ProcessKey(Struct, frozen=True):
    """One process for all time: boot id, pid, and start in ticks since boot."""

    boot_id: str
    pid: int
    start: int

    def text(self) -> str:
        """The form that files and tables hold: `<boot id>:<pid>:<start>`."""
        return f"{self.boot_id}:{self.pid}:{self.start}"


def process_key(text: str) -> ProcessKey:
    """The reverse of ProcessKey.text; raises ValueError on other text."""
    boot_id, pid, start = text.rsplit(":", 2)
    return ProcessKey(boot_id, int(pid), int(start))


class Message(Struct, frozen=True):
    """One message as the server gave it; the body is untrusted text."""

    message_id: MessageId
    sequence: int
    inbox_id: InboxId
    conversation_id: str
    sender: str
    sent_at: str
    body: str
    sender_provider: str = ""


class DeliveryState(StrEnum):
    """Where one message in one attachment stands (ARCHITECTURE: delivery)."""

    NONE = "none"
    PENDING = "pending"
    OFFERING = "offering"
    RECALLED = "recalled"
    OFFERED = "offered"
    AMBIGUOUS = "ambiguous"
    ADMITTED = "admitted"
    PROCESSED = "processed"
    WITHHELD = "withheld"
    RETIRED = "retired"


class Delivery(Struct, frozen=True):
    """One message in one attachment.

    `body` is there in pending, offering and recalled, and nowhere else. `named`
    says that the agent was told once that this id may not have arrived.
    `native_closed` says that a native route refused it, so only a hook or an
    explicit read remains. `reason` says why it is withheld.
    """

    attachment_id: AttachmentId
    message_id: MessageId
    sequence: int = 0
    inbox_id: InboxId = InboxId("")
    conversation_id: str = ""
    sender: str = ""
    sender_provider: str = ""
    sent_at: str = ""
    state: DeliveryState = DeliveryState.NONE
    body: str | None = None
    offer_id: OfferId | None = None
    changed_at: float = 0.0
    named: bool = False
    native_closed: bool = False
    reason: str = ""


class OfferOutcome(StrEnum):
    """What is known of one offer; `out` is saved before anything is emitted."""

    OUT = "out"
    EMITTED = "emitted"
    NOT_EMITTED = "not_emitted"
    UNKNOWN = "unknown"


class Offer(Struct, frozen=True):
    """One batch handed to one route: one commit, one nonce, one outcome.

    The `_before` times are what a definite NotEmitted restores, if the
    attachment still holds this offer's `_after` times.
    """

    offer_id: OfferId
    attachment_id: AttachmentId
    session_id: SessionId
    route: str
    nonce: str
    at: float
    message_ids: tuple[MessageId, ...]
    named_ids: tuple[MessageId, ...] = ()
    setup_before: float | None = None
    setup_after: float | None = None
    guidance_before: float | None = None
    guidance_after: float | None = None
    outcome: OfferOutcome = OfferOutcome.OUT


class ReceiptState(StrEnum):
    """Whether the server has our receipt."""

    UNSENT = "unsent"
    SENT = "sent"
    REFUSED = "refused"


class Receipt(Struct, frozen=True):
    """A sign about one message, on its way to the server.

    `delivery` is admitted, processed or typed (a receipt), or offered or unsure
    (an observation, kept apart by the server). `evidence` is agent,
    native_queue or empty.
    """

    attachment_id: AttachmentId
    message_id: MessageId
    delivery: str
    at: float
    evidence: str = ""
    state: ReceiptState = ReceiptState.UNSENT


class SubmissionState(StrEnum):
    """Where one outgoing message stands (ARCHITECTURE: outbox)."""

    QUEUED = "queued"
    IN_FLIGHT = "in_flight"
    UNCERTAIN = "uncertain"
    WAITING = "waiting"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    ORPHANED = "orphaned"


class Submission(Struct, frozen=True):
    """One outgoing message; the server sees the same submission id every time.

    Exactly one of `target` (an address such as `agent:bob`) and `inbox_id` is
    set until it is accepted; then `inbox_id` is what the server gave. `body` is
    kept until a definite answer. `lane` is the inbox id, or the folded target
    before one exists: within one lane submissions go out in `number` order.
    `not_before` is on the wall clock and only kept for restart.
    """

    submission_id: SubmissionId
    attachment_id: AttachmentId
    agent_id: AgentId
    lane: str
    content_hash: str
    number: int = 0
    body: str | None = None
    target: str | None = None
    inbox_id: InboxId | None = None
    state: SubmissionState = SubmissionState.QUEUED
    created_at: float = 0.0
    not_before: float = 0.0
    attempts: int = 0
    message_id: MessageId | None = None
    conversation_id: str = ""
    sequence: int = 0
    refusal_code: str = ""
    refusal: str = ""
    told: bool = False


class AttachmentState(StrEnum):
    """Where one attachment stands (ARCHITECTURE: attachment)."""

    NEW = "new"
    ATTACHED = "attached"
    OFFLINE = "offline"
    HELD = "held"
    REPLACED = "replaced"
    REVOKED = "revoked"
    DETACHING = "detaching"
    DETACHED = "detached"


class Want(StrEnum):
    """How the person wants mail to come, beyond the usual; all are off by default.

    AT_PROMPT: what came while the chat was idle goes with the person's next prompt.
    MID_TURN: also after a tool call, while the turn runs. NO_WAKE: at turn ends
    only, so that no message starts a turn by itself.
    """

    AT_PROMPT = "at_prompt"
    MID_TURN = "mid_turn"
    NO_WAKE = "no_wake"


class Attachment(Struct, frozen=True):
    """A name bound to one live session of one provider program.

    `server` is `embedded` or the base address of a server; `parent_config` is
    the config file whose login made it, empty for embedded. `made_by` is person
    or own (an agent, on its person's request). `watermark` is the highest
    sequence taken into the journal; `offered_through` how far the server knows
    that nothing is pending; `receipt_cursor` the last receipt number seen.
    `setup_at` and `guidance_at` belong to the exact session. `offline_since` is
    when the session ended, and of a lease that is over when that ended.
    `native_route` is the address of the verified native way, empty without one.
    `wants` are the person's wishes for this attachment.
    """

    attachment_id: AttachmentId
    agent_id: AgentId
    name: str
    provider: str
    session_id: SessionId
    process_key: ProcessKey
    state: AttachmentState = AttachmentState.NEW
    server: str = "embedded"
    parent_config: str = ""
    made_by: str = "person"
    folder: str = ""
    purpose: str = ""
    created_at: float = 0.0
    watermark: int = 0
    offered_through: int = 0
    receipt_cursor: int = 0
    setup_at: float | None = None
    guidance_at: float | None = None
    offline_since: float | None = None
    native_route: str = ""
    wants: tuple[str, ...] = ()
