"""Qwen Code's input file: a line in it is a prompt of that one chat.

Owns the one line that is appended. Promises one attempt for each offer, in one
write, to a plain file that only we can write to; that nothing but a prompt is ever
written there; and that a write counts as an offer and nothing more: the prompt
event that shows its text is what confirms it. Observed with 0.24.4: an idle chat
starts a turn within half a second and keeps a half-typed draft, a busy one takes it
after its turn. The host would read a file into the prompt wherever an `@` is before
its name, so that every `@` goes with the backslash before it that prevents that.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached
from bridge.errors import BridgeError, Refused

# The chat shows a prompt whole; beyond this its screen is slow.
BUDGET = Budget("utf16", 20_000)
# Without O_NONBLOCK a FIFO in the file's place would block for ever.
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITABLE_BY_OTHERS = 0o022
# After any other failure a part of the line may be in the file.
_NOTHING_WRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class QwenInput:
    """A Way to the chat whose program was started with this file.

    `is_current` says whether that program still has this very chat open.
    """

    route = "qwen_input"
    budget = BUDGET
    limit = 20

    def __init__(self, path: Path, is_current: Callable[[], bool]) -> None:
        self._path = path
        self._is_current = is_current
        self.address = f"qwen+input://{path}"

    def check(self) -> None:
        """Raises Refused, with the reason, where nothing could be written now."""
        os.close(self._opened())

    async def is_open(self) -> bool:
        """The chat is still the one that is open there, and the file is safe."""
        try:
            self.check()
        except BridgeError:
            return False
        return True

    async def offer(self, parcel: Parcel) -> Reached:
        """Append it as one line; not one byte is written where that is refused."""
        try:
            file = self._opened()
        except BridgeError as error:
            return Reached(OfferOutcome.NOT_EMITTED, error.message, is_over=True)
        try:
            return _append(file, line(parcel.text))
        finally:
            os.close(file)

    def _opened(self) -> int:
        if not self._is_current():
            raise _refused("Qwen Code has another chat open by now, or has not said.")
        try:
            file = os.open(self._path, _FLAGS)
        except OSError as error:
            why = f"Qwen Code's input file cannot be opened ({error.strerror})."
            raise _refused(why) from error
        problem = _problem(file)
        if problem:
            os.close(file)
            raise _refused(f"Qwen Code's input file {problem}.")
        return file


def line(text: str) -> bytes:
    """The line that submits this text as a prompt, in ASCII, with each `@` as `\\@`."""
    harmless = text.replace("@", "\\@")
    return json.dumps({"type": "submit", "text": harmless}).encode() + b"\n"


def _problem(file: int) -> str:
    """What speaks against writing there; empty when nothing does."""
    present = os.fstat(file)
    if not stat.S_ISREG(present.st_mode):
        return "is no plain file"
    if present.st_uid != os.geteuid():
        return "belongs to another user"
    if present.st_nlink != 1:
        return "is known by more than one name"
    if present.st_mode & _WRITABLE_BY_OTHERS:
        return "can be written by others: chmod 600 makes it yours"
    if present.st_size and os.pread(file, 1, present.st_size - 1) != b"\n":
        return "ends in the middle of another program's line"
    return ""


def _append(file: int, said: bytes) -> Reached:
    try:
        written = os.write(file, said)
    except OSError as error:
        if error.errno not in _NOTHING_WRITTEN:
            why = f"Qwen Code's input file failed ({error.strerror})."
            return Reached(OfferOutcome.UNKNOWN, why, is_over=True)
        why = f"Qwen Code's input file took nothing ({error.strerror})."
        return Reached(OfferOutcome.NOT_EMITTED, why)
    if written < len(said):
        why = "Qwen Code's input file took a part of the line only."
        return Reached(OfferOutcome.UNKNOWN, why, is_over=True)
    return Reached(OfferOutcome.EMITTED)


def _refused(why: str) -> Refused:
    return Refused(
        "way_not_open",
        why,
        "Mail comes at the end of a turn; see agentworks agents.",
    )
