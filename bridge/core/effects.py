"""Everything a machine can ask for, and nothing else.

A machine returns effects in the order they must happen. Every `Save` comes
before the Emit it protects and before the Answer to a local caller, so that the
durability contract can be read in a test. The driver commits neighbouring saves
in one transaction and shows the next record only after it.
"""

from __future__ import annotations

from msgspec import Struct

from bridge.core.ids import AttachmentId, MessageId, OfferId, SubmissionId
from bridge.core.records import (
    Attachment,
    Delivery,
    Offer,
    OfferOutcome,
    Receipt,
    Submission,
)


class Effect(Struct, frozen=True):
    """Base of all effects."""


class Save(Effect, frozen=True):
    """Base of what the store commits."""


# ---- saves of one delivery: each carries the whole next record ----------------


class SaveDelivery(Save, frozen=True):
    """Write this delivery's row as it now is (a body of None is erased)."""

    delivery: Delivery


class SaveMessage(SaveDelivery, frozen=True):
    """First save: the body, and the attachment's watermark, in one commit."""


class SaveOffer(SaveDelivery, frozen=True):
    """It belongs to an offer that may now be emitted."""


class SaveOffered(SaveDelivery, frozen=True):
    """It was emitted; the body is erased."""


class SavePending(SaveDelivery, frozen=True):
    """It was certainly not emitted; it waits again."""


class SaveRecalled(SaveDelivery, frozen=True):
    """It was retracted while an offer of it is out."""


class SaveAmbiguous(SaveDelivery, frozen=True):
    """It may have been emitted; never offered again; the body is erased."""


class SaveWithheld(SaveDelivery, frozen=True):
    """It will not be shown; the body is erased."""


class SaveNamed(SaveDelivery, frozen=True):
    """Its id is named once in the offer being saved."""


class SaveReceipt(SaveDelivery, frozen=True):
    """A receipt was given: the row's new state and the receipt, in one commit."""

    receipt: Receipt


class SaveForeignReceipt(Save, frozen=True):
    """A receipt for an id that the journal does not hold (read by hand)."""

    receipt: Receipt


class Forget(Save, frozen=True):
    """Remove the row; the watermark keeps it from coming back."""

    attachment_id: AttachmentId
    message_id: MessageId


# ---- other saves --------------------------------------------------------------


class SaveOfferRecord(Save, frozen=True):
    """The offer itself, before anything of it is emitted."""

    offer: Offer


class SaveOfferOutcome(Save, frozen=True):
    """What is now known of an offer."""

    offer_id: OfferId
    outcome: OfferOutcome


class SaveReceiptState(Save, frozen=True):
    """The receipt was sent or refused."""

    receipt: Receipt


class SaveSubmission(Save, frozen=True):
    """Write this submission's row as it now is."""

    submission: Submission


class ForgetSubmission(Save, frozen=True):
    """Remove the row."""

    submission_id: SubmissionId
    attachment_id: AttachmentId


class SaveAttachment(Save, frozen=True):
    """Write this attachment's row; its watermark can only rise."""

    attachment: Attachment


class ForgetAttachment(Save, frozen=True):
    """Remove the attachment and every row that belongs to it, in one commit."""

    attachment_id: AttachmentId


# ---- what touches the world ------------------------------------------------------


class Emit(Effect, frozen=True):
    """Hand this delivery to the route, as part of its offer."""

    delivery: Delivery


class SendReceipt(Effect, frozen=True):
    """Tell the server."""

    receipt: Receipt


class Answer(Effect, frozen=True):
    """Tell the local caller what now holds."""

    state: str


class AnswerNotTaken(Effect, frozen=True):
    """Tell the offer's maker that this message is not free."""


class Refuse(Effect, frozen=True):
    """Tell the local caller no, and why."""

    code: str
    message: str


class Count(Effect, frozen=True):
    """Something late or repeated: counted, nothing else."""

    what: str


class Send(Effect, frozen=True):
    """Write this submission to the server now."""

    submission: Submission


class TellAgent(Effect, frozen=True):
    """The agent learns of this refused submission in its next offer."""

    submission: Submission


class TellPerson(Effect, frozen=True):
    """One line for the person, by code (`detached`, `replaced`, `revoked`, ...)."""

    code: str
    attachment: Attachment


class OpenStream(Effect, frozen=True):
    """Start (or restart) this attachment's stream."""

    attachment: Attachment


class CloseStream(Effect, frozen=True):
    """End this attachment's stream."""

    attachment: Attachment


class EndLease(Effect, frozen=True):
    """Tell every delivery of this attachment LeaseEnded."""

    attachment: Attachment
    reason: str


class OrphanSubmissions(Effect, frozen=True):
    """Tell this attachment's open submissions SubmissionDetached or LeaseRefused.

    SubmissionDetached when the attachment is detaching or detached.
    """

    attachment: Attachment


class TellServerOffline(Effect, frozen=True):
    """Say that the session is offline; failing is harmless."""

    attachment: Attachment


class TellServerDetached(Effect, frozen=True):
    """Revoke the child and let the name go offline at the server."""

    attachment: Attachment


class EraseTokens(Effect, frozen=True):
    """Remove this attachment's lease file."""

    attachment: Attachment
