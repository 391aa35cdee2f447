"""The offer rows: one batch handed to one route.

Promises that an offer that may have been emitted stays as long as a delivery
names it, so that its nonce and its named ids are known after a restart.
"""

from __future__ import annotations

import sqlite3

from bridge.core.ids import AttachmentId, OfferId
from bridge.core.records import Offer, OfferOutcome
from bridge.store.rows import Table, ids_to_text, text_to_ids

OFFERS = Table(
    "offer",
    Offer,
    ("offer_id",),
    into={"message_ids": ids_to_text, "named_ids": ids_to_text},
    back={
        "message_ids": text_to_ids,
        "named_ids": text_to_ids,
        "outcome": OfferOutcome,
    },
)


def save(connection: sqlite3.Connection, offer: Offer) -> None:
    """Write the row; this attachment's certainly unemitted ones are done with."""
    connection.execute(
        "DELETE FROM offer WHERE attachment_id = ? AND outcome = 'not_emitted'",
        (offer.attachment_id,),
    )
    OFFERS.save(connection, offer)


def save_outcome(
    connection: sqlite3.Connection, offer_id: OfferId, outcome: OfferOutcome
) -> None:
    """Take note of what is now known of the offer."""
    connection.execute(
        "UPDATE offer SET outcome = ? WHERE offer_id = ?", (outcome, offer_id)
    )


def read_out(connection: sqlite3.Connection) -> list[Offer]:
    """The offers whose outcome nobody noted, oldest first."""
    return OFFERS.read(connection, "WHERE outcome = 'out' ORDER BY at, offer_id")


def read_one(connection: sqlite3.Connection, offer_id: OfferId) -> Offer | None:
    """One offer, or None."""
    return OFFERS.read_one(connection, "WHERE offer_id = ?", (offer_id,))


def read_all(
    connection: sqlite3.Connection, attachment_id: AttachmentId
) -> list[Offer]:
    """Every kept offer of one attachment, oldest first."""
    return OFFERS.read(
        connection, "WHERE attachment_id = ? ORDER BY at, offer_id", (attachment_id,)
    )
