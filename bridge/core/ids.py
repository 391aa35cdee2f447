"""The names of things: typed ids, their grammar, and how new ones are made.

Promises that every id this project makes is `<prefix>-` and a UUIDv7, that two
names are the same exactly when they fold to the same text, and that a default
name depends only on provider and session (and on which names are taken).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import NewType

AttachmentId = NewType("AttachmentId", str)
AgentId = NewType("AgentId", str)
MessageId = NewType("MessageId", str)
InboxId = NewType("InboxId", str)
SubmissionId = NewType("SubmissionId", str)
SessionId = NewType("SessionId", str)
OfferId = NewType("OfferId", str)
Sequence = NewType("Sequence", int)

NAME_LIMIT = 64
PURPOSE_LIMIT = 512
MESSAGE_LIMIT = 20_000
SUBMISSION_ID_LIMIT = 128
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PRINTABLE = re.compile(r"[\x20-\x7e]{1,128}")


def uuid7(wall_s: float, random_bytes: bytes) -> str:
    """RFC 9562 version 7 text from a wall time and ten random bytes."""
    milliseconds = int(wall_s * 1000) & (2**48 - 1)
    noise = int.from_bytes(random_bytes[:10])
    value = milliseconds << 80 | noise
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def new_id(prefix: str, wall_s: float, random_bytes: bytes) -> str:
    """A fresh id such as `msg-0193...`; prefixes: msg inbox att agent offer sub."""
    return f"{prefix}-{uuid7(wall_s, random_bytes)}"


def fold_name(name: str) -> str:
    """The text two names are compared by: ASCII lower case."""
    return name.lower() if name.isascii() else name


def is_name(text: str) -> bool:
    """True for 1 to 64 ASCII letters, digits, dots, underscores and hyphens."""
    return _NAME.fullmatch(text) is not None


def is_submission_id(text: str) -> bool:
    """True for 1 to 128 printable ASCII characters."""
    return _PRINTABLE.fullmatch(text) is not None


def default_name(
    provider: str, session_id: str, is_taken: Callable[[str], bool]
) -> str:
    """Provider and four base32 characters of the session's hash, longer if taken.

    The same session gets the same name for ever, as long as the same names are
    taken by others. `is_taken` is asked with a folded name.
    """
    digest = hashlib.sha256(f"{provider}\0{session_id}".encode()).digest()
    letters = base64.b32encode(digest).decode().lower().rstrip("=")
    for length in range(4, len(letters) + 1):
        name = f"{provider}-{letters[:length]}"
        if not is_taken(name):
            return name
    return f"{provider}-{letters}"
