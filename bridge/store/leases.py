"""The lease files: each attachment's child tokens, and nowhere else.

Owns `leases/<attachment id>.json`, 0600 in a 0700 folder. Promises that a file
is whole or absent after a crash (temp, fsync, rename, fsync of the folder), and
that a file which others could have read or written is refused, unread.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import trio

from bridge.core.ids import AttachmentId
from bridge.core.tokens import ChildTokens
from bridge.errors import (
    EXIT_CONFIG,
    Refused,
    StorageBroken,
    StorageFull,
    Unavailable,
)

# Two tokens and an id are below 1 KiB; more is not ours.
SIZE_LIMIT = 64 * 1024

# A refresh is one request to the server; who holds the lock longer is stuck.
LOCK_DEADLINE_S = 30.0
LOCK_RETRY_S = 0.05

_FULL = (errno.ENOSPC, errno.EDQUOT)
# What may be otherwise in a moment, and says nothing of the file.
_WANT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_PASSING = (*_WANT, errno.EIO)
_FILE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class Leases:
    """The folder of lease files; made if it is missing."""

    def __init__(self, folder: Path) -> None:
        """Make or vet the folder; raises StorageBroken (78) with the fix."""
        self._folder = folder
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise _unsafe_folder(folder, "Move it away.")
        if found.st_mode & 0o077:
            raise _unsafe_folder(folder, f"Run: chmod 700 {folder}")

    async def read(self, attachment_id: AttachmentId) -> ChildTokens | None:
        """The tokens, or None when there are none.

        Raises Refused for a file that is open to others, not ours, or not what
        we write; its content is never in the message. Raises Unavailable while the
        system has no descriptor or cannot read it.
        """
        path = self._path(attachment_id)
        return await trio.to_thread.run_sync(_read_tokens, path)

    async def save(self, attachment_id: AttachmentId, tokens: ChildTokens) -> None:
        """Replace the tokens; they are on the disk when this returns.

        Raises StorageFull, StorageBroken (75), or Unavailable while the system has
        no descriptor; then the old ones stand.
        """
        path = self._path(attachment_id)
        await trio.to_thread.run_sync(_write_tokens, path, tokens)

    async def erase(self, attachment_id: AttachmentId) -> None:
        """Remove the tokens; nothing happens when there are none."""
        path = self._path(attachment_id)
        await trio.to_thread.run_sync(_erase_tokens, path)

    @asynccontextmanager
    async def locked(self, attachment_id: AttachmentId) -> AsyncIterator[None]:
        """Hold the file against every other process while refreshing it.

        Read the tokens again inside: the one before may have refreshed them.
        Raises Unavailable after 30 s or without a descriptor, Refused when there is
        no file.
        """
        path = self._path(attachment_id)
        file = await _lock(path)
        try:
            yield
        finally:
            os.close(file)

    def _path(self, attachment_id: AttachmentId) -> Path:
        if _FILE_ID.fullmatch(attachment_id) is None:
            raise Refused(
                "bad_attachment_id", "That is no attachment id; no file was touched."
            )
        return self._folder / f"{attachment_id}.json"


def _read_tokens(path: Path) -> ChildTokens | None:
    try:
        file = os.open(path, _READ)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _not_opened(path, error) from error
    try:
        _vet(path, os.fstat(file))
        content = os.read(file, SIZE_LIMIT)
    except OSError as error:
        raise _not_now(path, error) from error
    finally:
        os.close(file)
    try:
        return msgspec.json.decode(content, type=ChildTokens)
    except msgspec.DecodeError as error:
        raise _unsafe(path, "does not hold what the bridge wrote") from error


def _vet(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _unsafe(path, "is not a plain file")
    if found.st_uid != os.geteuid():
        raise _unsafe(path, "belongs to another user")
    if found.st_mode & 0o077:
        raise _unsafe(path, "is open to others")
    if found.st_size >= SIZE_LIMIT:
        raise _unsafe(path, "is far too large")


def _write_tokens(path: Path, tokens: ChildTokens) -> None:
    new = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            new.unlink()
        _write_synced(new, msgspec.json.encode(tokens))
        # Crash: the name means the old tokens until the new ones are whole
        # (test_a_half_written_file_does_not_replace_the_old).
        new.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno in _WANT:
            raise _not_now(path, error) from error
        raise _failed(path, error) from error


def _write_synced(path: Path, content: bytes) -> None:
    file = os.open(path, _WRITE | os.O_EXCL, 0o600)
    try:
        while content:
            content = content[os.write(file, content) :]
        os.fsync(file)
    finally:
        os.close(file)


def _erase_tokens(path: Path) -> None:
    try:
        for name in (path, path.with_name(f"{path.name}.new")):
            with suppress(FileNotFoundError):
                name.unlink()
        _sync_folder(path.parent)
    except OSError as error:
        raise _failed(path, error) from error


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


async def _lock(path: Path) -> int:
    with trio.move_on_after(LOCK_DEADLINE_S):
        while True:
            file = _try_lock(path)
            if file is not None:
                return file
            await trio.sleep(LOCK_RETRY_S)
    raise Unavailable(
        "lease_locked",
        f"Another process has been refreshing {path} for 30 s; nothing was changed.",
        "End the other bridge process and try again.",
    )


def _try_lock(path: Path) -> int | None:
    try:
        file = os.open(path, _READ)
    except OSError as error:
        raise _not_opened(path, error) from error
    is_ours = False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Race: saving replaces the file, so the lock may be on the one before
        # (test_a_lock_on_a_replaced_file_is_taken_again).
        is_ours = os.path.samestat(os.fstat(file), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if not is_ours:
            os.close(file)
    return file if is_ours else None


def _not_opened(path: Path, error: OSError) -> Refused | Unavailable:
    if error.errno in _PASSING:
        return _not_now(path, error)
    return _unsafe(path, "cannot be opened as a plain file")


def _not_now(path: Path, error: OSError) -> Unavailable:
    return Unavailable(
        "lease_not_now",
        f"The system does not give or take {path} just now ({error.strerror}).",
        "The bridge tries again; see what holds so many files or so much memory.",
    )


def _unsafe(path: Path, what: str) -> Refused:
    return Refused(
        "lease_unsafe",
        f"{path} {what}; it is not used.",
        f"Remove it and attach again: rm {path}",
    )


def _unsafe_folder(folder: Path, fix: str) -> StorageBroken:
    return StorageBroken(
        "leases_unsafe",
        f"{folder} must be a folder of yours that nobody else may enter;"
        " it is not used.",
        fix,
        exit_code=EXIT_CONFIG,
    )


def _failed(path: Path, error: OSError) -> StorageBroken | StorageFull:
    if error.errno in _FULL:
        return StorageFull(
            "storage_full",
            f"There is no room to save {path}; the old tokens stand.",
            "Make room on that disk.",
        )
    return StorageBroken(
        "lease_io",
        f"The disk did not take {path} ({error.strerror}); the old tokens stand.",
        "Check the disk and the folder's permissions, then start the bridge again.",
    )
