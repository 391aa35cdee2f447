"""What the server answers, as far as the bridge reads it.

Fields that a newer server adds are ignored; a missing or wrong one is Invalid.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from bridge.core.ids import AgentId, AttachmentId, InboxId, MessageId, SubmissionId
from bridge.core.tokens import ChildTokens

# SQLite's and every JSON reader's safe range.
Whole = Annotated[int, Meta(ge=0, le=2**53)]
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Token = Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"^[!-~]+$")]


class Hello(Struct, frozen=True):
    """What the server is and allows."""

    version: str
    min_client: str = ""
    account: str = ""
    connection_id: str = ""
    limits: dict[str, Any] = field(default_factory=dict)
    features: tuple[str, ...] = ()


class Agent(Struct, frozen=True):
    """One name of the account's directory; `since` is when it came or left."""

    name: str
    provider: str = ""
    purpose: str = ""
    connected: bool = False
    since: str | None = None
    agent_id: str = ""


class Grant(Struct, frozen=True):
    """Tokens as the server gives them; `expires_in` is in seconds."""

    access_token: Token
    refresh_token: Token
    expires_in: Whole
    connection_id: str = ""

    def __repr__(self) -> str:
        return f"Grant(connection_id={self.connection_id!r})"


class AttachReply(Struct, frozen=True):
    """The answer to attach, as it comes."""

    attachment_id: Id
    agent_id: Id
    name: Id
    state: str
    offered_through: Whole
    child: Grant | None = None
    roster: tuple[Agent, ...] = ()
    policy: str = "current"


class Lease(Struct, frozen=True):
    """A name bound to a session, by the server's word.

    `state` is attached, or held until the person confirms. `child` is None when
    the tokens that we hold (`child_id` of the request) still are the live ones.
    """

    attachment_id: AttachmentId
    agent_id: AgentId
    name: str
    state: str
    offered_through: int
    child: ChildTokens | None
    roster: tuple[Agent, ...]


class ReadMessage(Struct, frozen=True):
    """One message of an explicit read; the text is untrusted."""

    inbox_id: InboxId
    conversation_id: str
    message_id: MessageId
    sequence: Whole
    sender: str
    message: str
    sent_at: str
    sender_provider: str = ""
    reply_address: str = ""
    delivery: str = "stored"
    delivery_error: str = ""
    observed: str = ""


class ReadPage(Struct, frozen=True):
    """One page; `next_cursor` is where the next read starts."""

    messages: tuple[ReadMessage, ...]
    next_cursor: Whole
    inbox_id: str = ""


class Withheld(Struct, frozen=True):
    """A message that may not be shown, and why."""

    id: MessageId
    reason: str


class Released(Struct, frozen=True):
    """The server's fresh word; it counts from when it was asked for."""

    released: tuple[MessageId, ...]
    withheld: tuple[Withheld, ...] = ()
    valid_s: float = 30.0


class RecordedReceipt(Struct, frozen=True):
    """What the server now holds for one message."""

    message_id: MessageId
    delivery: str
    observed: str = ""


class ReceiptsTaken(Struct, frozen=True):
    """Which receipts the server recorded, and which ids it does not know."""

    recorded: tuple[RecordedReceipt, ...]
    unknown: tuple[MessageId, ...] = ()


class Recipient(Struct, frozen=True):
    """Who gets it: connected, offline, held or mailbox, and since when.

    `offline_since` is None while it is there, and from a server that does not say.
    """

    name: str = ""
    state: str = ""
    since: str | None = None
    offline_since: str | None = None


class SendResult(Struct, frozen=True):
    """The server has the message."""

    message_id: Id
    inbox_id: Id
    conversation_id: str
    sequence: Whole
    recipient: Recipient = Recipient()


class SentStatus(Struct, frozen=True):
    """What is known of a message that we sent."""

    message_id: MessageId
    inbox_id: InboxId
    conversation_id: str
    sequence: Whole
    delivery: str
    sent_at: str = ""
    submission_id: SubmissionId | None = None
    recipient: Recipient = Recipient()
    observed: str = ""
    delivery_error: str = ""
    delivery_at: str | None = None


class Directory(Struct, frozen=True):
    """The account's names."""

    agents: tuple[Agent, ...]


class Progress(Struct, frozen=True):
    """Where a newly attached session of this agent starts."""

    offered_through: Whole


class Purpose(Struct, frozen=True):
    """The purpose as the server keeps it."""

    purpose: str


class Nothing(Struct, frozen=True):
    """An answer whose content does not matter."""


class AttachRequest(Struct, frozen=True, omit_defaults=True):
    """What the person's (or own) attach asks; `confirm` is the person's yes.

    `child_id` is the connection id of the tokens that we hold for this name.
    """

    provider: str
    session_id: str
    host_id: str
    name: str | None = None
    purpose: str | None = None
    confirm: bool = False
    child_id: str | None = None
