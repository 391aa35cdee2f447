"""What is read from outside once all has stopped.

Owns the reading of notes, journal and server database, the latter two opened for
reading only. Promises that nothing is asked of the product itself.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.soak.facts import (
    NOWHERE,
    Ack,
    Attempt,
    Evidence,
    Handed,
    Hook,
    Kill,
    Outgoing,
    Row,
    Stored,
)
from tests.soak.offers import Shown, printed

Note = dict[str, Any]


def notes_of(folder: Path) -> list[Note]:
    """All notes of all scripts; a line that its death cut short is left out."""
    return [
        json.loads(line)
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.endswith("\n")
    ]


def opened(path: Path) -> sqlite3.Connection:
    """A database, for reading only."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    return database


def gather(
    notes: list[Note],
    journal: Path,
    server: Path,
    kills: Iterable[Kill],
    dropped: Iterable[str],
    unregistered: Mapping[str, float],
    attached: Iterable[str],
    forgotten: Iterable[Outgoing],
) -> Evidence:
    """Everything; `attached` are the names whose scripts lived to the end.

    `forgotten` are submissions that were refused, and went with a detach.
    """
    kept, known = opened(journal), opened(server)
    try:
        return Evidence(
            attempts=tuple(_attempts(notes)),
            hooks=tuple(_hooks(notes)),
            acks=tuple(_acks(notes)),
            stored=tuple(_stored(known)),
            rows=tuple(_rows(kept)),
            outgoing=(*forgotten, *_outgoing(kept)),
            kills=tuple(kills),
            dropped=frozenset(dropped),
            attached=_attached(kept, set(attached)),
            unregistered=unregistered,
        )
    finally:
        kept.close()
        known.close()


def refused_of(journal: Path, name: str) -> list[Outgoing]:
    """The refused submissions of this agent now; a detach takes them away."""
    kept = opened(journal)
    try:
        rows = [each for each in _outgoing(kept) if each.agent == name]
    except sqlite3.OperationalError:  # just being started
        rows = []
    finally:
        kept.close()
    return [each for each in rows if each.state == "refused"]


def queued_by(notes: list[Note], agent: str, until: float) -> set[str]:
    """What this agent had been told is queued by then."""
    return {
        note["id"]
        for note in notes
        if note["what"] == "send" and note["agent"] == agent and note["at"] <= until
    }


# ---- notes ------------------------------------------------------------------------


def _attempts(notes: list[Note]) -> Iterator[Attempt]:
    answered: set[str] = set()
    for note in notes:
        if note["what"] == "send":
            answered.add(note["id"])
            yield Attempt(
                note["agent"],
                note["id"],
                note["answer"],
                note["may_be_kept"],
                note["message_id"],
            )
    for note in notes:
        if note["what"] == "sending" and note["id"] not in answered:
            yield Attempt(note["agent"], note["id"], "")


def _hooks(notes: list[Note]) -> Iterator[Hook]:
    begun: dict[str, Note] = {}
    for note in notes:
        if note["what"] == "hooking":
            begun[note["agent"]] = note
        elif note["what"] == "hook":
            begun.pop(note["agent"], None)
            yield _hook(note)
    # Its script died with it: what was printed by then nobody has seen.
    for note in begun.values():
        yield Hook(note["agent"], "killed", note["at"], note["at"])


def _hook(note: Note) -> Hook:
    offer = printed(note["text"])
    shown = offer.shown if offer is not None else ()
    return Hook(
        agent=note["agent"],
        kind=note["kind"],
        began=note["began"],
        ended=note["at"],
        handed=tuple(Handed(each.message_id, is_whole(each)) for each in shown),
        unsure=offer.unsure if offer is not None else (),
        once=offer.once if offer is not None else (),
    )


def is_whole(shown: Shown) -> bool:
    """The body begins and ends with its submission id, as every body of ours."""
    if shown.body is None:
        return True
    words = shown.body.split(" ")
    return (
        len(words) == 3 and words[0] == words[2] and _name_in(words[0]) == shown.sender
    )


def _name_in(submission_id: str) -> str:
    return submission_id.rsplit("-", 2)[0]


def _acks(notes: list[Note]) -> Iterator[Ack]:
    for note in notes:
        if note["what"] in ("acking", "ack"):
            yield Ack(
                note["agent"],
                note["message_id"],
                note["delivery"],
                note.get("answer", ""),
            )


# ---- databases ----------------------------------------------------------------------


def _stored(server: sqlite3.Connection) -> Iterator[Stored]:
    asked = """
        SELECT m.id, m.body, s.name AS sender, r.name AS recipient,
               m.conversation_id, m.mailbox_sequence, m.delivery, m.observed,
               m.retracted
        FROM messages m
        LEFT JOIN agents s ON s.id = m.sender_id
        LEFT JOIN agents r ON r.id = m.recipient_id
    """
    for row in server.execute(asked):
        yield Stored(
            message_id=row["id"],
            submission_id=row["body"].split(" ", 1)[0],
            sender=row["sender"] or "",
            recipient=row["recipient"] or "",
            conversation_id=row["conversation_id"],
            sequence=row["mailbox_sequence"] or 0,
            delivery=row["delivery"],
            observed=row["observed"],
            retracted=row["retracted"],
        )


def _rows(journal: sqlite3.Connection) -> Iterator[Row]:
    asked = """
        SELECT d.message_id, a.name, d.state, d.reason, d.offer_id, d.named
        FROM delivery d JOIN attachment a USING (attachment_id)
    """
    for row in journal.execute(asked):
        yield Row(
            row["message_id"],
            row["name"],
            row["state"],
            row["reason"],
            row["offer_id"] or "",
            bool(row["named"]),
        )


def _outgoing(journal: sqlite3.Connection) -> Iterator[Outgoing]:
    asked = """
        SELECT s.submission_id, a.name, s.state, s.message_id, s.refusal_code
        FROM submission s JOIN attachment a USING (attachment_id)
    """
    for row in journal.execute(asked):
        yield Outgoing(
            row["submission_id"],
            row["name"],
            row["state"],
            row["message_id"] or "",
            row["refusal_code"],
        )


def _attached(journal: sqlite3.Connection, names: set[str]) -> dict[str, int]:
    asked = "SELECT name, watermark FROM attachment WHERE state = 'attached'"
    found = {row["name"]: row["watermark"] for row in journal.execute(asked)}
    return {name: found.get(name, NOWHERE) for name in names}
