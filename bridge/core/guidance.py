"""The how-to text: with the first offer of a session, and again after 24 hours.

Owns when it is due and what it says. Promises the eight facts in their own
words; the time it was given is kept with the attachment, so that a restart of
the bridge does not repeat it.
"""

from __future__ import annotations

from bridge.core.facts import FACTS
from bridge.core.records import Attachment

INTERVAL_S = 24 * 3600.0


def is_due(attachment: Attachment, at: float) -> bool:
    """True before the first offer and from 24 hours of wall time after the last.

    A time more than 24 hours ahead was written by a clock that was wrong; it
    must not keep the guidance away for years.
    """
    given_at = attachment.guidance_at
    return given_at is None or abs(at - given_at) >= INTERVAL_S


def text(attachment: Attachment, program: str = "agentworks") -> str:
    """The whole how-to; `program` is the command as it can be pasted."""
    sentences = "\n".join(f"- {fact.sentence}" for fact in FACTS)
    return (
        "How messages between agents work (said at first and again "
        f"after 24 hours):\n{sentences}\n"
        "- After an unknown outcome send again with the same submission id: it cannot "
        "arrive twice.\n"
        "- Every tool has a command for a session without it, such as "
        f"{program} bridge message ack --provider {attachment.provider} "
        "--message-id ID --delivery admitted"
    )
