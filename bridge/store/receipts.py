"""The receipt rows: signs about messages, on their way to the server.

Promises the order in which they were given, and that a settled receipt stays
only as long as the delivery that it is about.
"""

from __future__ import annotations

import sqlite3

from bridge.core.records import Receipt, ReceiptState
from bridge.store.rows import Table

RECEIPTS = Table(
    "receipt",
    Receipt,
    ("attachment_id", "message_id", "delivery"),
    back={"state": ReceiptState},
)


def save(connection: sqlite3.Connection, receipt: Receipt) -> None:
    """Write the row as it now is."""
    RECEIPTS.save(connection, receipt)


def save_state(connection: sqlite3.Connection, receipt: Receipt) -> None:
    """Take note that it was sent or refused; drop it when nothing needs it."""
    key = (receipt.attachment_id, receipt.message_id, receipt.delivery)
    connection.execute(
        "UPDATE receipt SET state = ?"
        " WHERE attachment_id = ? AND message_id = ? AND delivery = ?",
        (receipt.state, *key),
    )
    connection.execute(
        "DELETE FROM receipt WHERE attachment_id = ?1 AND message_id = ?2"
        " AND delivery = ?3 AND state <> 'unsent' AND NOT EXISTS (SELECT 1 FROM"
        " delivery WHERE attachment_id = ?1 AND message_id = ?2)",
        key,
    )


def read_unsent(connection: sqlite3.Connection) -> list[Receipt]:
    """What the server does not have yet, in the order it was given."""
    return RECEIPTS.read(connection, "WHERE state = 'unsent' ORDER BY number")
