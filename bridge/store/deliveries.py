"""The delivery rows: one message in one attachment.

Promises that a row's body is gone from the table the moment a save says so
(the file's bytes follow at the next checkpoint), and that a forgotten row
leaves no finished offer and no settled receipt behind.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from msgspec import Struct

from bridge.core.ids import AgentId, AttachmentId, MessageId
from bridge.core.records import Delivery, DeliveryState
from bridge.store.rows import Table

DELIVERIES = Table(
    "delivery",
    Delivery,
    ("attachment_id", "message_id"),
    back={"state": DeliveryState, "named": bool, "native_closed": bool},
)
_KEY = "WHERE attachment_id = ? AND message_id = ?"

# Possibly shown to the agent. Withheld is not among them: what an old lease
# withheld is for the next lease of the same agent to show.
_MAY_HAVE_BEEN_SHOWN = (
    "'offering', 'recalled', 'offered', 'ambiguous', 'admitted', 'processed'"
)


class Usage(Struct, frozen=True):
    """How much is kept: rows, and bytes of their bodies in UTF-8."""

    rows: int = 0
    body_bytes: int = 0


def save(connection: sqlite3.Connection, delivery: Delivery) -> None:
    """Write the row as it now is."""
    DELIVERIES.save(connection, delivery)


def save_all(connection: sqlite3.Connection, rows: Iterable[Delivery]) -> None:
    """Write each row as it now is, in their order."""
    DELIVERIES.save_all(connection, rows)


def forget(
    connection: sqlite3.Connection, attachment_id: AttachmentId, message_id: MessageId
) -> None:
    """Remove the row; an unsent receipt of it stays until it is sent."""
    key = (attachment_id, message_id)
    found = connection.execute(f"SELECT offer_id FROM delivery {_KEY}", key)  # noqa: S608
    row = found.fetchone()
    connection.execute(f"DELETE FROM delivery {_KEY}", key)  # noqa: S608
    connection.execute(f"DELETE FROM receipt {_KEY} AND state <> 'unsent'", key)  # noqa: S608
    if row is not None and row[0] is not None:
        connection.execute(
            "DELETE FROM offer WHERE offer_id = ?1 AND outcome <> 'out'"
            " AND NOT EXISTS (SELECT 1 FROM delivery WHERE offer_id = ?1)",
            row,
        )


def read_all(
    connection: sqlite3.Connection, attachment_id: AttachmentId
) -> list[Delivery]:
    """Every delivery of one attachment, in sequence order."""
    return DELIVERIES.read(
        connection, "WHERE attachment_id = ? ORDER BY sequence", (attachment_id,)
    )


def read_one(
    connection: sqlite3.Connection, attachment_id: AttachmentId, message_id: MessageId
) -> Delivery | None:
    """One delivery, or None when the journal does not hold it."""
    return DELIVERIES.read_one(connection, _KEY, (attachment_id, message_id))


def was_offered(
    connection: sqlite3.Connection, agent_id: AgentId, message_id: MessageId
) -> bool:
    """True when any attachment of this agent may have shown the message.

    A receipt says so too, when its delivery was forgotten before the server heard
    (test_what_is_forgotten_and_not_yet_told_was_offered).
    """
    found = connection.execute(
        "SELECT 1 FROM delivery JOIN attachment USING (attachment_id)"  # noqa: S608
        " WHERE message_id = ?1 AND agent_id = ?2"
        f" AND delivery.state IN ({_MAY_HAVE_BEEN_SHOWN})"
        " UNION ALL SELECT 1 FROM attachment JOIN receipt USING (attachment_id)"
        " WHERE message_id = ?1 AND agent_id = ?2 LIMIT 1",
        (message_id, agent_id),
    )
    return found.fetchone() is not None


def usage(connection: sqlite3.Connection) -> dict[AttachmentId, Usage]:
    """What each attachment keeps; one that keeps nothing is absent."""
    rows = connection.execute(
        "SELECT attachment_id, count(*), total(length(CAST(body AS BLOB)))"
        " FROM delivery GROUP BY attachment_id"
    )
    return {AttachmentId(key): Usage(count, int(size)) for key, count, size in rows}
