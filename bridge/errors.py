"""The taxonomy of what can go wrong, named by what to do next.

Owns the five kinds of error and the process exit codes. Promises that a caller
who knows only the class knows whether to try again. Errors of other libraries
are translated once, where they arise, with `raise ... from`; everything that is
not a BridgeError is a bug and ends the nursery it happens in.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_ALLOWED = 3
EXIT_CONFLICT = 4
EXIT_UNREACHABLE = 75  # EX_TEMPFAIL: bridge or server not reachable; try again
EXIT_CONFIG = 78  # EX_CONFIG: permanent; a supervisor must not restart

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_EXIT_BY_STATUS = {401: EXIT_NOT_ALLOWED, 403: EXIT_NOT_ALLOWED, 409: EXIT_CONFLICT}


class BridgeError(Exception):
    """Something a person or agent can be told in one or two plain sentences.

    `code` is stable and short (`name_held`); `message` says what happened and
    what it means; `hint` says what to do next and may be empty. `exit_code` is
    what a command ends with when this is its last word.
    """

    exit_code: int = EXIT_FAILED

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def sentence(self) -> str:
        """What happened, then what to do, as one printable line."""
        return f"{self.message} {self.hint}".strip()


class Unavailable(BridgeError):
    """Try again later: no network, 5xx, 429, a stopped bridge.

    `retry_after_s` is the other side's own floor in seconds, or None.
    """

    exit_code = EXIT_UNREACHABLE

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(code, message, hint)
        self.retry_after_s = retry_after_s


class Refused(BridgeError):
    """Do not try again: a person or a new lease is needed (401, 403, 404, 409).

    `exit_code` follows from `status` unless it is given. `details` are facts that
    the server gave with its no (nearest names, who holds a name), as decoded JSON.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        status: int | None = None,
        exit_code: int | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(code, message, hint)
        self.status = status
        self.details: Mapping[str, object] = details or {}
        by_status = _EXIT_BY_STATUS.get(status or 0, EXIT_FAILED)
        self.exit_code = by_status if exit_code is None else exit_code


class Unknown(BridgeError):
    """It may have happened: never retried by itself (a reply lost after a write)."""


class Invalid(BridgeError):
    """The other side sent nonsense: close that one peer and go on."""


class StorageBroken(BridgeError):
    """The journal cannot be trusted or written: stop and keep the evidence.

    `exit_code` tells a supervisor: 75 may be restarted, 78 may not.
    """

    def __init__(
        self, code: str, message: str, hint: str = "", exit_code: int = EXIT_UNREACHABLE
    ) -> None:
        super().__init__(code, message, hint)
        self.exit_code = exit_code


class StorageFull(BridgeError):
    """No room: the save did not happen, the old state stands, reads still work."""

    exit_code = EXIT_UNREACHABLE


@contextmanager
def single_error() -> Iterator[None]:
    """Of a nursery's group raise what is not a BridgeError, else the first of it."""
    try:
        yield
    except BaseExceptionGroup as group:
        _, rest = group.split(BridgeError)
        if rest is not None:
            raise rest from None
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


@contextmanager
def disk_named(place: Path) -> Iterator[None]:
    """Whatever the disk refuses in here is said in a sentence that names `place`.

    Raises StorageFull when there is no room, else StorageBroken (exit 75).
    """
    try:
        yield
    except OSError as error:
        raise disk_trouble(place, error) from error


def disk_trouble(place: Path, error: OSError) -> StorageFull | StorageBroken:
    """What to raise for a disk that did not take what was to be kept in `place`."""
    if error.errno in _NO_ROOM:
        return StorageFull(
            "storage_full",
            f"There is no room to save in {place}; nothing new is taken or sent.",
            "Make room on that disk, then start the bridge again.",
        )
    return StorageBroken(
        "disk_io",
        f"The disk did not take what belongs in {place} ({error.strerror}).",
        "Check the disk and the folder's permissions, then start the bridge again.",
    )
