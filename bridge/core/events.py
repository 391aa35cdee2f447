"""Everything that can happen to a machine, and nothing else.

Four groups, one per machine. An event is what the outside says; it carries the
facts that a decision needs and no more. `at` is a wall time passed in by the
driver, since the core reads no clock.
"""

from __future__ import annotations

from msgspec import Struct

from bridge.core.ids import AttachmentId, InboxId, MessageId, OfferId
from bridge.core.records import Message, ProcessKey


class Event(Struct, frozen=True):
    """Base of all events; `at` is wall seconds."""

    at: float


# ---- one message in one attachment -----------------------------------------


class Received(Event, frozen=True):
    """The stream brought the message. `above_watermark`: its sequence is new."""

    message: Message
    above_watermark: bool


class Taken(Event, frozen=True):
    """A route was chosen and the message belongs to this offer."""

    offer_id: OfferId


class Emitted(Event, frozen=True):
    """The route says that every byte was handed to the agent's program."""


class NotEmitted(Event, frozen=True):
    """The route says that not one byte was handed over, and none will be."""

    reason: str = ""
    native: bool = False


class Unknown(Event, frozen=True):
    """The route cannot say; it may have happened."""

    reason: str = ""


class Restarted(Event, frozen=True):
    """The daemon started and found the row as it was when it died."""


class Unconfirmed(Event, frozen=True):
    """The host's next sign contradicts an offer that was printed."""


class Admitted(Event, frozen=True):
    """The agent (or a native queue's own yes) says that it arrived."""

    evidence: str = "agent"


class Processed(Event, frozen=True):
    """The agent says that it has dealt with the message."""

    evidence: str = "agent"


class Retracted(Event, frozen=True):
    """The server no longer stands by the message."""

    reason: str


class LeaseEnded(Event, frozen=True):
    """The attachment was replaced, revoked or detached."""

    reason: str


class Aged(Event, frozen=True):
    """Older than its retention (quota decides)."""


class Pressure(Event, frozen=True):
    """The quota needs room (quota decides whom to ask)."""


# ---- one receipt --------------------------------------------------------------


class ReceiptTaken(Event, frozen=True):
    """The server has it (or had it already)."""


class ReceiptRefused(Event, frozen=True):
    """The server takes no receipt from this lease any more (410, 404)."""


class ReceiptRestarted(Event, frozen=True):
    """The daemon started and found the row."""


# ---- one submission ----------------------------------------------------------


class Sent(Event, frozen=True):
    """Its turn came: it is about to be written to the server."""


class Accepted(Event, frozen=True):
    """The server accepted it."""

    message_id: MessageId
    inbox_id: InboxId
    conversation_id: str
    sequence: int


class SubmissionRefused(Event, frozen=True):
    """The server said no for good."""

    code: str
    message: str


class LeaseRefused(Event, frozen=True):
    """The server no longer takes a lease (410, 401), or it was replaced or revoked.

    `attachment_id` says which lease, so that a late answer to an old one ends
    nothing; empty means the one that the submission now has.
    """

    attachment_id: AttachmentId = AttachmentId("")


class RateLimited(Event, frozen=True):
    """The server asks to wait until this wall time (429, 503)."""

    not_before: float


class ReplyLost(Event, frozen=True):
    """It may have been accepted: the same submission id goes out again."""


class SubmissionRestarted(Event, frozen=True):
    """The daemon started and found the row."""


class LeaseMoved(Event, frozen=True):
    """The same agent id has a new attachment."""

    attachment_id: AttachmentId


class SubmissionDetached(Event, frozen=True):
    """The person detached the agent."""


# ---- one attachment ----------------------------------------------------------


class PersonAttach(Event, frozen=True):
    """The person attached (or confirmed) this exact session."""

    process_key: ProcessKey


class OwnAttach(Event, frozen=True):
    """An agent attached its own session on its person's request."""

    process_key: ProcessKey


class SessionEnded(Event, frozen=True):
    """The host says that the session ended, or left it (/clear, /resume)."""

    reason: str = ""


class ProcessGone(Event, frozen=True):
    """The provider process died or became another."""


class ServerReplaced(Event, frozen=True):
    """The name moved to another session elsewhere."""


class ServerRevoked(Event, frozen=True):
    """The connection was revoked by the person."""


class ServerHeld(Event, frozen=True):
    """The attachment waits for the person's confirmation."""


class Confirmed(Event, frozen=True):
    """The server took the person's confirmation."""


class BridgeStopped(Event, frozen=True):
    """The bridge is stopping; identities are kept."""


class BridgeStarted(Event, frozen=True):
    """The bridge started. `verified`: same process key and exact session."""

    verified: bool


class Detach(Event, frozen=True):
    """The person (or the agent that made it) detached."""


class DetachFinished(Event, frozen=True):
    """The server was told, or can be told no more."""


class Unregistered(Event, frozen=True):
    """The name was unregistered at the server."""


class TokenRefused(Event, frozen=True):
    """The child token and its one refresh were refused."""


class RouteFound(Event, frozen=True):
    """A native route to this session was verified."""

    native_route: str
