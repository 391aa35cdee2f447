"""The attachment rows: a name bound to one live session.

Promises that no save lowers a watermark or a receipt cursor, and that
forgetting an attachment removes every row that belongs to it.
"""

from __future__ import annotations

import sqlite3

from bridge.core.ids import AttachmentId
from bridge.core.records import Attachment, AttachmentState, ProcessKey, process_key
from bridge.store.rows import Table, ids_to_text, text_to_ids

# A record read before the newest message was taken may be saved after it: what
# only rises keeps the higher value, and the schema's trigger refuses the rest.
_RISING = {
    "watermark": "max(attachment.watermark, excluded.watermark)",
    "receipt_cursor": "max(attachment.receipt_cursor, excluded.receipt_cursor)",
}

ATTACHMENTS = Table(
    "attachment",
    Attachment,
    ("attachment_id",),
    into={"process_key": ProcessKey.text, "wants": ids_to_text},
    back={
        "process_key": process_key,
        "state": AttachmentState,
        "wants": text_to_ids,
    },
    kept=_RISING,
)


def save(connection: sqlite3.Connection, attachment: Attachment) -> None:
    """Write the row as it now is."""
    ATTACHMENTS.save(connection, attachment)


def raise_watermark(
    connection: sqlite3.Connection, attachment_id: AttachmentId, sequence: int
) -> None:
    """Take note that everything to `sequence` is in the journal."""
    connection.execute(
        "UPDATE attachment SET watermark = ?1"
        " WHERE attachment_id = ?2 AND watermark < ?1",
        (sequence, attachment_id),
    )


def forget(connection: sqlite3.Connection, attachment_id: AttachmentId) -> None:
    """Remove the row and, by the schema's cascades, all that belongs to it."""
    connection.execute(
        "DELETE FROM attachment WHERE attachment_id = ?", (attachment_id,)
    )


def read_all(connection: sqlite3.Connection) -> list[Attachment]:
    """Every attachment, oldest first."""
    return ATTACHMENTS.read(connection, "ORDER BY created_at, attachment_id")


def read_one(
    connection: sqlite3.Connection, attachment_id: AttachmentId
) -> Attachment | None:
    """One attachment, or None."""
    return ATTACHMENTS.read_one(connection, "WHERE attachment_id = ?", (attachment_id,))
