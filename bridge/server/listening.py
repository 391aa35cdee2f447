"""The server's place on this computer: its socket's path and its lock.

Owns binding, taking over what is stale, and one server per database. Promises
that the socket is private from its first moment, that nothing but a dead socket
is ever removed, and that the lock file is never unlinked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bridge.errors import EXIT_CONFIG, StorageBroken, Unavailable

_BACKLOG = 128
# The shortest limit of the systems we run on (macOS: 104 with its NUL).
_PATH_BYTES = 103


@contextmanager
def only_server(database: Path) -> Iterator[None]:
    """Hold the lock beside the database; the lock file is never unlinked."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(f"{database}.lock", flags, 0o600)
    except OSError as error:
        raise StorageBroken(
            "storage_unusable",
            f"The lock of {database} cannot be opened ({error.strerror}).",
            "Check that its folder is yours and writable.",
            EXIT_CONFIG,
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise Unavailable(
            "already_served",
            f"Another process serves {database}, such as the bridge of this state"
            " folder itself.",
            "Stop it first: agentworks bridge stop, or, if that is a server run alone,"
            " end that one.",
        ) from error
    finally:
        os.close(descriptor)


def open_listener(path: Path) -> socket.socket:
    """Bind a private socket (0600) at a path of at most 103 bytes and listen.

    A socket that nobody answers is taken over; anything else in that place is
    left alone (Unavailable).
    """
    if len(os.fsencode(path)) > _PATH_BYTES:
        raise Unavailable(
            "path_too_long",
            f"The socket path {path} has more than {_PATH_BYTES} bytes.",
            "Choose a shorter one.",
        )
    _clear_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    earlier = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        is_taken = error.errno == errno.EADDRINUSE
        raise Unavailable(
            "socket_unusable",
            f"Cannot listen at {path} ({error.strerror}).",
            "Something is there already: end it, or choose another path."
            if is_taken
            else "Choose a path in a folder of yours that exists.",
        ) from error
    finally:
        os.umask(earlier)
    return listener


def _clear_stale(path: Path) -> None:
    if not path.is_socket() or path.is_symlink():
        return
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(1.0)
    try:
        probe.connect(os.fspath(path))
    except ConnectionRefusedError:
        path.unlink()
    except OSError:
        return
    finally:
        probe.close()


def unlink_own(path: Path, bound: os.stat_result) -> None:
    """Remove our socket, unless another process has put its own there."""
    with suppress(FileNotFoundError):
        found = os.stat(path, follow_symlinks=False)
        if (found.st_dev, found.st_ino) == (bound.st_dev, bound.st_ino):
            path.unlink()
