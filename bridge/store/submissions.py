"""The submission rows: what our agents say, on its way to the server.

Promises that one agent's submission id names one row for as long as the row is
kept, whichever attachment of that agent carries it.
"""

from __future__ import annotations

import sqlite3

from bridge.core.ids import AgentId, AttachmentId, SubmissionId
from bridge.core.records import Submission, SubmissionState
from bridge.store.deliveries import Usage
from bridge.store.rows import Table

SUBMISSIONS = Table(
    "submission",
    Submission,
    ("agent_id", "submission_id"),
    back={"state": SubmissionState, "told": bool},
)
_COUNT = "SELECT count(*), total(length(CAST(body AS BLOB))) FROM submission"
_OPEN = "state IN ('queued', 'in_flight', 'uncertain', 'waiting')"


def save(connection: sqlite3.Connection, submission: Submission) -> None:
    """Write the row as it now is."""
    SUBMISSIONS.save(connection, submission)


def forget(
    connection: sqlite3.Connection,
    attachment_id: AttachmentId,
    submission_id: SubmissionId,
) -> None:
    """Remove the row."""
    connection.execute(
        "DELETE FROM submission WHERE attachment_id = ? AND submission_id = ?",
        (attachment_id, submission_id),
    )


def read_open(connection: sqlite3.Connection) -> list[Submission]:
    """What has no definite answer yet, in the order it must go out."""
    return SUBMISSIONS.read(connection, f"WHERE {_OPEN} ORDER BY number")


def read_untold(connection: sqlite3.Connection) -> list[Submission]:
    """Refused ones whose agent does not know it yet, in order."""
    return SUBMISSIONS.read(
        connection, "WHERE state = 'refused' AND told = 0 ORDER BY number"
    )


def read_of(
    connection: sqlite3.Connection, attachment_id: AttachmentId
) -> list[Submission]:
    """Every kept submission of one attachment, in order."""
    return SUBMISSIONS.read(
        connection, "WHERE attachment_id = ? ORDER BY number", (attachment_id,)
    )


def read_one(
    connection: sqlite3.Connection, agent_id: AgentId, submission_id: SubmissionId
) -> Submission | None:
    """What is known of this agent's submission id, or None."""
    return SUBMISSIONS.read_one(
        connection,
        "WHERE agent_id = ? AND submission_id = ?",
        (agent_id, submission_id),
    )


def last_number(connection: sqlite3.Connection) -> int:
    """The highest number any kept submission has, 0 when there is none."""
    found = connection.execute("SELECT coalesce(max(number), 0) FROM submission")
    return int(found.fetchone()[0])


def usage(connection: sqlite3.Connection) -> Usage:
    """How much waits to go out."""
    found = connection.execute(f"{_COUNT} WHERE {_OPEN}")
    count, size = found.fetchone()
    return Usage(count, int(size))
