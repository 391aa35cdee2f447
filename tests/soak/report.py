"""What a soak says at its end: a small table, and the history of what is off.

Owns the texts. Promises that every id that is off is named with all that is
known of it, so that it can be followed through the logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.soak.evidence import Note
from tests.soak.facts import Evidence
from tests.soak.ledger import Ledger

MOST_HISTORIES = 20
_TEXT_LIMIT = 400


def table(ledger: Ledger, evidence: Evidence, deeds: Mapping[str, int]) -> str:
    """The books in one look."""
    classes = dict(ledger.classes)
    total = sum(classes.values())
    kills = [each.which for each in evidence.kills]
    rows = [
        ("sent by agents", ledger.sent),
        ("  said to be kept", ledger.kept),
        *[(f"  refused: {why}", count) for why, count in ledger.refused.items()],
        ("  never sent, and listed at a detach", ledger.dropped),
        ("accepted by the server", ledger.accepted),
        *[(f"  {name}{_why(name, ledger)}", count) for name, count in classes.items()],
        ("  = all of these", total),
        ("unsure offers", ledger.unsure_offers),
        ("  hooks cut off by a kill", ledger.causes),
        ("hooks", len(evidence.hooks)),
        ("kills of the bridge", kills.count("bridge")),
        ("kills of the server", kills.count("server")),
        *[(f"  {kind}", count) for kind, count in sorted(deeds.items())],
    ]
    return "\n".join(f"{name:<52}{count:>8}" for name, count in rows)


def _why(name: str, ledger: Ledger) -> str:
    if name != "withheld" or not ledger.reasons:
        return ""
    return " (" + ", ".join(f"{why} {n}" for why, n in ledger.reasons.items()) + ")"


def histories(ledger: Ledger, evidence: Evidence, notes: list[Note]) -> Iterator[str]:
    """Each id that is off, with its whole history."""
    for fault in ledger.faults[:MOST_HISTORIES]:
        yield f"\n{fault.id}: {fault.what}"
        yield from history(fault.id, evidence, notes)
    if len(ledger.faults) > MOST_HISTORIES:
        yield f"\nand {len(ledger.faults) - MOST_HISTORIES} more:"
        for fault in ledger.faults[MOST_HISTORIES:]:
            yield f"  {fault.id}: {fault.what}"


def history(id_: str, evidence: Evidence, notes: list[Note]) -> Iterator[str]:
    """All that is known of one message or submission."""
    ids = {id_}
    for message in evidence.stored:
        if id_ in (message.message_id, message.submission_id):
            ids |= {message.message_id, message.submission_id}
            yield f"  server   {message}"
    yield from (f"  journal  {row}" for row in evidence.rows if row.message_id in ids)
    for outgoing in evidence.outgoing:
        if outgoing.submission_id in ids:
            yield f"  journal  {outgoing}"
    for note in sorted(notes, key=lambda each: float(each["at"])):
        if _speaks_of(note, ids):
            text = ", ".join(f"{key}={_short(said)}" for key, said in note.items())
            yield f"  notes    {text}"


def _speaks_of(note: Note, ids: set[str]) -> bool:
    if {note.get("id"), note.get("message_id")} & ids:
        return True
    return any(id_ in str(note.get("text", "")) for id_ in ids)


def _short(said: object) -> str:
    text = str(said)
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]!r}..."
