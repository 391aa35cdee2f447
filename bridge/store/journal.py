"""The journal: what must survive a crash, as the core's Save effects say it.

Owns the meaning of every Save and the reads that a start needs. Promises that
the saves of one commit hold together or not at all, that a commit that returned
survives a power cut, and that a watermark never falls.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Self, TypeGuard

from bridge.clock import Clock
from bridge.core.effects import (
    Forget,
    ForgetAttachment,
    ForgetSubmission,
    Save,
    SaveAttachment,
    SaveDelivery,
    SaveForeignReceipt,
    SaveMessage,
    SaveOfferOutcome,
    SaveOfferRecord,
    SaveReceipt,
    SaveReceiptState,
    SaveSubmission,
)
from bridge.core.ids import AgentId, AttachmentId, MessageId, OfferId, SubmissionId
from bridge.core.records import Attachment, Delivery, Offer, Receipt, Submission
from bridge.store import (
    attachments,
    deliveries,
    offers,
    opening,
    receipts,
    submissions,
)
from bridge.store.database import Database, Statistics
from bridge.store.deliveries import Usage


class Journal:
    """One open journal; also an async context manager that closes it.

    Every call raises StorageFull (nothing was saved, reads still work),
    StorageBroken (stop, with its exit code) or Unavailable (another program
    holds the file, or it is closed).
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(
        cls, path: Path, clock: Clock, limit_bytes: int = opening.LIMIT_BYTES
    ) -> Self:
        """Open or create the journal file in a folder that is already vetted.

        `limit_bytes` is the size at which saving is refused as StorageFull.
        """
        return cls(await Database.open(path, clock, limit_bytes))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def commit(self, saves: Sequence[Save]) -> None:
        """Make all of `saves` durable together, in their order.

        Commits that wait at the same time share one fsync. Cancellation is
        felt before the commit begins or after it, never during.
        """
        kept = tuple(saves)
        await self._database.write(lambda connection: _apply_all(connection, kept))

    # ---- reads -------------------------------------------------------------------

    async def attachments(self) -> list[Attachment]:
        """Every attachment, oldest first."""
        return await self._database.read(attachments.read_all)

    async def attachment(self, attachment_id: AttachmentId) -> Attachment | None:
        """One attachment, or None."""
        return await self._database.read(
            lambda connection: attachments.read_one(connection, attachment_id)
        )

    async def deliveries(self, attachment_id: AttachmentId) -> list[Delivery]:
        """Every delivery of one attachment, in sequence order."""
        return await self._database.read(
            lambda connection: deliveries.read_all(connection, attachment_id)
        )

    async def delivery(
        self, attachment_id: AttachmentId, message_id: MessageId
    ) -> Delivery | None:
        """One delivery, or None when the journal does not hold it."""
        return await self._database.read(
            lambda connection: deliveries.read_one(
                connection, attachment_id, message_id
            )
        )

    async def offered_among(
        self, agent_id: AgentId, message_ids: Sequence[MessageId]
    ) -> frozenset[MessageId]:
        """Those that any attachment of this agent may have shown."""

        def look(connection: sqlite3.Connection) -> frozenset[MessageId]:
            return frozenset(
                each
                for each in message_ids
                if deliveries.was_offered(connection, agent_id, each)
            )

        return await self._database.read(look)

    async def offers_out(self) -> list[Offer]:
        """The offers that were out when the daemon died, oldest first."""
        return await self._database.read(offers.read_out)

    async def offer(self, offer_id: OfferId) -> Offer | None:
        """One offer, or None when nothing needs it any more."""
        return await self._database.read(
            lambda connection: offers.read_one(connection, offer_id)
        )

    async def offers(self, attachment_id: AttachmentId) -> list[Offer]:
        """Every kept offer of one attachment, oldest first."""
        return await self._database.read(
            lambda connection: offers.read_all(connection, attachment_id)
        )

    async def unsent_receipts(self) -> list[Receipt]:
        """What the server does not have yet, in the order it was given."""
        return await self._database.read(receipts.read_unsent)

    async def open_submissions(self) -> list[Submission]:
        """What has no definite answer yet, in the order it must go out."""
        return await self._database.read(submissions.read_open)

    async def untold_submissions(self) -> list[Submission]:
        """Refused submissions whose agent does not know it yet, in order."""
        return await self._database.read(submissions.read_untold)

    async def submissions(self, attachment_id: AttachmentId) -> list[Submission]:
        """Every kept submission of one attachment, in order."""
        return await self._database.read(
            lambda connection: submissions.read_of(connection, attachment_id)
        )

    async def submission(
        self, agent_id: AgentId, submission_id: SubmissionId
    ) -> Submission | None:
        """What is known of this agent's submission id, or None."""
        return await self._database.read(
            lambda connection: submissions.read_one(connection, agent_id, submission_id)
        )

    async def last_submission_number(self) -> int:
        """The highest number that any kept submission has; 0 for none."""
        return await self._database.read(submissions.last_number)

    async def usage(self) -> dict[AttachmentId, Usage]:
        """Deliveries and their bodies' bytes, by attachment."""
        return await self._database.read(deliveries.usage)

    async def outbox_usage(self) -> Usage:
        """Open submissions and their bodies' bytes."""
        return await self._database.read(submissions.usage)

    # ---- the file ----------------------------------------------------------------

    async def checkpoint(self) -> None:
        """Empty the log, after which erased bodies are in no file.

        Call when idle. Raises Unavailable when another program's read keeps
        the log.
        """
        await self._database.checkpoint()

    async def ping(self) -> None:
        """Prove that thread and file would take a write now (for the watchdog).

        Nothing is written. Called about once a minute it also notices a moved or
        replaced file. Raises Unavailable while another program holds the file.
        """
        await self._database.ping()

    def statistics(self) -> Statistics:
        """Writes confirmed and transactions synced so far."""
        return self._database.statistics()

    async def close(self) -> None:
        """Write the log back and end the thread; may be called twice."""
        await self._database.close()


def _apply_all(connection: sqlite3.Connection, saves: Sequence[Save]) -> None:
    for kind, alike in groupby(saves, type):
        if kind is SaveMessage:
            _apply_messages(connection, [each for each in alike if _is_message(each)])
            continue
        for save in alike:
            if isinstance(save, SaveDelivery):
                _apply_delivery(connection, save)
            else:
                _apply(connection, save)


def _is_message(save: Save) -> TypeGuard[SaveMessage]:
    return type(save) is SaveMessage


def _apply_messages(
    connection: sqlite3.Connection, saves: Sequence[SaveMessage]
) -> None:
    """Messages that came together: their rows, then one watermark for each owner."""
    deliveries.save_all(connection, [save.delivery for save in saves])
    highest: dict[AttachmentId, int] = {}
    for save in saves:
        owner, place = save.delivery.attachment_id, save.delivery.sequence
        highest[owner] = max(place, highest.get(owner, place))
    # Crash: body and watermark in one commit, or the message is lost or taken
    # twice (test_a_message_and_its_watermark_are_saved_together).
    for owner, place in highest.items():
        attachments.raise_watermark(connection, owner, place)


def _apply_delivery(connection: sqlite3.Connection, save: SaveDelivery) -> None:
    deliveries.save(connection, save.delivery)
    if isinstance(save, SaveReceipt):
        receipts.save(connection, save.receipt)


def _apply(connection: sqlite3.Connection, save: Save) -> None:
    match save:
        case SaveForeignReceipt(receipt=receipt):
            receipts.save(connection, receipt)
        case Forget():
            deliveries.forget(connection, save.attachment_id, save.message_id)
        case SaveOfferRecord(offer=offer):
            offers.save(connection, offer)
        case SaveOfferOutcome():
            offers.save_outcome(connection, save.offer_id, save.outcome)
        case SaveReceiptState(receipt=receipt):
            receipts.save_state(connection, receipt)
        case SaveSubmission(submission=submission):
            submissions.save(connection, submission)
        case ForgetSubmission():
            submissions.forget(connection, save.attachment_id, save.submission_id)
        case SaveAttachment(attachment=attachment):
            attachments.save(connection, attachment)
        case ForgetAttachment():
            attachments.forget(connection, save.attachment_id)
        case _:
            raise TypeError(f"no meaning for {type(save).__name__}")
