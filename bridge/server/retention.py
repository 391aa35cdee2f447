"""What is forgotten: tokens that ended, and answers nobody will ask for again.

Owns the hourly sweep. Promises never to touch a message: those are bounded by
their conversations.
"""

from __future__ import annotations

from sqlalchemy import delete

from bridge.server.schema import access_tokens, receipts, refresh_tokens, submissions
from bridge.server.store import Unit


def sweep(unit: Unit) -> None:
    """Remove expired tokens, and submission answers and receipts past their time."""
    old = unit.now - unit.settings.submission_kept_s
    unit.run(delete(access_tokens).where(access_tokens.c.expires_at <= unit.now))
    unit.run(delete(refresh_tokens).where(refresh_tokens.c.expires_at <= unit.now))
    unit.run(delete(submissions).where(submissions.c.sent_at < old))
    unit.run(delete(receipts).where(receipts.c.at < old))
