"""Every limit of the message server, as settings.

Owns the numbers of the one limits table. Promises that nothing in this room
counts against a number of its own: tests and benchmarks pass other settings.
Names carry their unit; a plain noun counts things.
"""

from __future__ import annotations

from msgspec import Struct

from bridge.core.ids import MESSAGE_LIMIT, PURPOSE_LIMIT, SUBMISSION_ID_LIMIT

VERSION = "0.1.0"
MIN_CLIENT = "0.1.0"

# A mailbox cursor and a conversation cursor are both small integers. They start
# this far apart so that a cursor of the wrong kind is recognised and refused.
MAILBOX_START = 500_000_000
LARGEST_CURSOR = 1_000_000_000

FEATURES = (
    "attachments",
    "stream",
    "release",
    "receipts",
    "progress",
    "sent",
    "purpose",
    "directory",
)


class Settings(Struct, frozen=True):
    """What one server process allows and how often it does things."""

    # Requests.
    body_bytes: int = 16 * 1024 * 1024
    body_wait_s: float = 30.0
    connections: int = 1_024
    # Longer than a client keeps an idle connection (httpx: 5 s), so that the
    # client is the one that closes it and never writes into a closed one.
    keep_alive_s: float = 75.0
    stop_grace_s: float = 0.5

    # Tokens.
    access_token_s: int = 3_600
    refresh_token_s: int = 30 * 86_400

    # Names.
    names_per_account: int = 100
    names: int = 2_000
    purpose_characters: int = PURPOSE_LIMIT
    purpose_pause_s: float = 60.0
    roster: int = 20
    nearest_names: int = 3
    # Raised when the meaning of "who may send to me" changes; an agent that was
    # confirmed under a lower number is held until its person confirms again.
    policy: int = 1
    # A lease without a stream counts as live for this long.
    live_without_stream_s: float = 600.0

    # Messages.
    message_characters: int = MESSAGE_LIMIT
    conversation_messages: int = 1_000
    conversation_hourly: int = 120
    read_page: int = 100
    read_wait_s: float = 25.0
    release_ids: int = 100
    release_valid_s: int = 30
    receipts_page: int = 500
    submission_kept_s: float = 30 * 86_400.0

    # Streams.
    streams: int = 200
    replay_page: int = 20
    heartbeat_s: float = 10.0
    # A client that takes nothing for this long is closed; its cursor recovers it.
    send_wait_s: float = 10.0
    wake_slice: int = 50

    # Storage. Two readers: more threads would only take turns on the
    # interpreter's lock, and make the bridge's own loop wait for its turn.
    reader_threads: int = 2
    busy_wait_s: float = 5.0
    sweep_s: float = 3_600.0


def advertised(settings: Settings) -> dict[str, float]:
    """The limits that a client is told in the hello."""
    return {
        "message_characters": settings.message_characters,
        "submission_id_characters": SUBMISSION_ID_LIMIT,
        "purpose_characters": settings.purpose_characters,
        "names_per_account": settings.names_per_account,
        "read_page": settings.read_page,
        "read_wait_s": settings.read_wait_s,
        "replay_page": settings.replay_page,
        "heartbeat_s": settings.heartbeat_s,
        "release_valid_s": settings.release_valid_s,
        "body_bytes": settings.body_bytes,
        "streams": settings.streams,
    }
