"""Changing files in a person's project: shown first, whole or not at all, undone.

Owns the reading, the diff and the writing of files that we share with the person
and with other programs. Promises that only a plain file of the person's own, of
at most 1 MiB and reached through no link inside the project is read or replaced;
that a file which changed since it was shown is left alone; that what was there
lies beside it as a copy; and that what was written is read back.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from bridge.core.visible import visible
from bridge.errors import Refused
from bridge.paths import make_private_folder, read_private_file, write_private_file
from bridge.providers.strict_json import NotStrict

LIMIT_BYTES = 1024 * 1024
BACKUP_SUFFIX = ".agentworks-backup"
_NEW_FILE = 0o644
_NEW_FOLDER = 0o755
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a FIFO in the file's place would block for ever.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Change(Struct, frozen=True):
    """One file below `root`: what is in it now and what will be; None is no file.

    `name` is the path below `root`, with slashes.
    """

    root: Path
    name: str
    before: str | None
    after: str | None

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self.root / self.name


class PackageFile(Struct, frozen=True):
    """One file of our own package, in our own private folder."""

    path: Path
    content: bytes


class Plan(Struct, frozen=True):
    """What installing or removing would do, before anything is done.

    `changes` are in the person's project and are shown and asked for; `package`
    is what must lie in our own state folder; `notes` are sentences for the
    person, in order.
    """

    changes: tuple[Change, ...] = ()
    package: tuple[PackageFile, ...] = ()
    notes: tuple[str, ...] = ()

    def diff(self) -> str:
        """The changes in the project as a unified diff that is safe to print."""
        return "".join(_diff(change) for change in self.changes)


def read(root: Path, name: str) -> str | None:
    """The text of the file `name` below `root`, None when there is none.

    Raises Refused for a link on the way or in its place, anything but a plain
    file of our own, more than 1 MiB, and text that is not UTF-8.
    """
    try:
        with _folder(root, name, is_made=False) as folder:
            return _read(folder, root / name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(root / name, f"cannot be read ({error.strerror})") from error


def changes(
    root: Path, before: Mapping[str, str | None], after: Mapping[str, str | None]
) -> tuple[Change, ...]:
    """The changes from the texts that were read to these, by name; None removes."""
    every = (Change(root, name, before[name], after[name]) for name in before)
    return tuple(change for change in every if change.before != change.after)


@contextmanager
def strictly(path: Path) -> Iterator[None]:
    """Turns what is wrong inside this file into Refused, with its line."""
    try:
        yield
    except NotStrict as error:
        raise Refused(
            "file_not_strict",
            f"{path}, line {error.line}: {error.what}. The file was not touched.",
            "Mend that line and try again.",
        ) from error


def apply(plan: Plan) -> None:
    """Write our own package, then make the changes; what is done stays done.

    Raises Refused at the first file that is no more as it was shown or cannot be
    replaced.
    """
    # Crash: a project must never name a package that is not there yet.
    write_package(plan.package)
    for change in plan.changes:
        try:
            _apply(change)
        except OSError as error:
            raise Refused(
                "file_not_written",
                f"{change.path} could not be written: {error.strerror}.",
                "See to that and run the command again; what is done stays done.",
            ) from error


def write_package(files: Sequence[PackageFile]) -> None:
    """Make our own files what they should be; those that are stay untouched."""
    for file in files:
        make_private_folder(file.path.parent)
        if read_private_file(file.path, LIMIT_BYTES) != file.content:
            write_private_file(file.path, file.content)


def _apply(change: Change) -> None:
    with _folder(change.root, change.name, change.after is not None) as folder:
        # Race: the person or another program may have written it since it was
        # shown (test_a_file_that_changed_since_it_was_shown_is_left_alone).
        if _read(folder, change.path) != change.before:
            raise Refused(
                "file_changed",
                f"{change.path} changed after it was shown, so it was left alone.",
                "Run the command again to see the new difference.",
            )
        if change.after is None:
            os.unlink(change.path.name, dir_fd=folder)
        else:
            _replace(folder, change, change.after)
    if change.after is None:
        _remove_empty_folders(change.root, change.path.parent)


def _replace(folder: int, change: Change, after: str) -> None:
    name, copy = change.path.name, change.path.name + BACKUP_SUFFIX
    mode = _mode(folder, name)
    # Taking out what was added gives the copy again: then it has no more use.
    is_undone = _read(folder, change.path.with_name(copy)) == after
    if change.before is not None and not is_undone:
        _write(folder, copy, change.before, mode)
    _write(folder, name, after, mode)
    if _read(folder, change.path) != after:
        raise Refused(
            "file_not_written",
            f"{change.path} reads differently from what was written to it.",
            f"Look at it, and at the copy beside it, {copy}.",
        )
    if is_undone:
        os.unlink(copy, dir_fd=folder)


def _write(folder: int, name: str, text: str, mode: int | None) -> None:
    fresh = f".{name}.{os.getpid()}.new"
    with suppress(FileNotFoundError):  # left by a process that died with our pid
        os.unlink(fresh, dir_fd=folder)
    file = os.open(fresh, _WRITE_FLAGS, _NEW_FILE, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as opened:
            if mode is not None:
                os.fchmod(opened.fileno(), mode)
            opened.write(text.encode())
            opened.flush()
            # Crash: the content reaches the disk before the name does
            # (test_a_failing_write_leaves_the_old_file).
            os.fsync(opened.fileno())
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=folder)
        raise


def _read(folder: int, path: Path) -> str | None:
    try:
        file = os.open(path.name, _READ_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, "is a link or cannot be opened") from error
    with os.fdopen(file, "rb") as opened:
        present = os.fstat(opened.fileno())
        if not stat.S_ISREG(present.st_mode):
            raise _unusable(path, "is not a plain file")
        if present.st_uid != os.geteuid():
            raise _unusable(path, "belongs to another user")
        content = opened.read(LIMIT_BYTES + 1)
    if len(content) > LIMIT_BYTES:
        raise _unusable(path, f"is larger than {LIMIT_BYTES} bytes")
    return _decoded(path, content)


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _unusable(path, f"is not UTF-8 text in line {line}") from error


@contextmanager
def _folder(root: Path, name: str, is_made: bool) -> Iterator[int]:
    """The folder of the file, opened step by step from `root` through no link."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        at = root
        for part in Path(name).parts[:-1]:
            at = at / part
            folder = _step(folder, at, is_made)
        yield folder
    finally:
        os.close(folder)


def _step(folder: int, at: Path, is_made: bool) -> int:
    """Into the folder `at` of `folder`; closes `folder` when that worked."""
    if is_made:
        with suppress(FileExistsError):
            os.mkdir(at.name, _NEW_FOLDER, dir_fd=folder)
    try:
        inner = os.open(at.name, _FOLDER_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unusable(at, "is a link or no folder") from error
    if os.fstat(inner).st_uid != os.geteuid():
        os.close(inner)
        raise _unusable(at, "belongs to another user")
    os.close(folder)
    return inner


def _mode(folder: int, name: str) -> int | None:
    try:
        present = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(present.st_mode)


def _remove_empty_folders(root: Path, folder: Path) -> None:
    while folder != root:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _unusable(path: Path, what: str) -> Refused:
    return Refused(
        "file_unusable",
        f"{path} {what}, so it was not touched.",
        "Put a plain file of your own there, or remove it, and try again.",
    )


def _diff(change: Change) -> str:
    path = visible(str(change.path)).replace("\n", "\\n")
    lines = difflib.unified_diff(
        _lines(change.before),
        _lines(change.after),
        "/dev/null" if change.before is None else path,
        "/dev/null" if change.after is None else path,
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _lines(text: str | None) -> Sequence[str]:
    return [] if text is None else visible(text).splitlines(keepends=True)
