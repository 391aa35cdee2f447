"""One bridge per state folder, and the socket that is its door.

Owns the lock, the daemon's working folder and the socket file. Promises that of
any number of starters one wins and the others learn its pid; that the lock file
is never unlinked; that only a dead socket is taken over; that the socket is 0600
from its first moment, however long its path is; that a socket which is not ours
is never unlinked; and that what somebody else removed can be put back while the
bridge runs, without a second bridge coming in between.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from bridge.errors import EXIT_CONFIG, Refused, Unavailable
from bridge.paths import Paths, make_private_folder, open_private_folder, vet_folder

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SOCKET_UMASK = 0o177
# A full backlog makes clients wait or give up, so it is larger than the caps.
_BACKLOG = 256
# The winner writes its pid at once; a loser that comes in between asks again.
_PID_TRIES = 100
_PID_PAUSE_S = 0.01
_PROBE_S = 0.5

Identity = tuple[int, int]  # device and inode


class Instance:
    """The one daemon of a state folder, from `claim` to `release`."""

    def __init__(self, paths: Paths, state: int, folder: int, lock: int) -> None:
        self._paths = paths
        self._state = state
        self._folder = folder
        self._lock = lock
        self._listening: socket.socket | None = None
        self._bound: Identity | None = None

    @classmethod
    def claim(cls, paths: Paths) -> Self:
        """Take the lock and make the run folder this process' working folder.

        Raises Unavailable (`already_running`, exit 75, with the winner's pid)
        while another daemon holds it, and Refused (exit 78) for an unsafe place.
        """
        with ExitStack() as opened:
            folder = open_private_folder(paths.run)
            opened.callback(os.close, folder)
            # Race: when a bridge ends, whichever way, descriptors close in order:
            # who then gets the lock file must not meet the other lock
            # (test_a_killed_winner_is_followed_at_once).
            state = open_private_folder(paths.state)
            opened.callback(os.close, state)
            lock = _open_lock(paths, folder)
            opened.callback(os.close, lock)
            _lock_or_say_who(lock, _PID_TRIES)
            _lock_state_folder(state)
            os.fchdir(folder)
            opened.pop_all()
        return cls(paths, state, folder, lock)

    def listen(self) -> socket.socket:
        """Bind and listen on the socket, taking over a dead one.

        The lock is held, so no other daemon of ours is between our look at the
        old file and our bind. Raises Refused (exit 78) when something else is
        alive there, or when the place holds no socket.
        """
        name = self._paths.socket.name
        self._remove_dead_socket(name)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Race: no chmod after bind, since a client could come in between
        # (test_a_socket_is_private_at_any_umask). The name is relative to the
        # run folder, which is our working folder: no path is too long.
        before = os.umask(_SOCKET_UMASK)
        try:
            listening.bind(name)
        except BaseException:
            listening.close()
            raise
        finally:
            os.umask(before)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
        self._bound = _identity_of(name, self._folder)
        self._listening = listening
        return listening

    def is_in_place(self) -> bool:
        """True while our socket and our lock are found under their paths."""
        return self._is_socket_in_place() and (
            _identity_of(self._paths.lock) == _identity(os.fstat(self._lock))
        )

    def take_place_again(self) -> socket.socket | None:
        """Put back what was removed or replaced: run folder, lock and socket.

        The new socket, which listens instead of the one before, which the caller
        closes; None while that one is still in its place. What is there is vetted
        as at the start. Raises as `claim` and `listen` do; call it again then.
        """
        self._return_to_run_folder()
        self._lock_again()
        return None if self._is_socket_in_place() else self.listen()

    def release(self) -> None:
        """Unlink our own socket and let the lock go; the lock file stays."""
        if self._listening is not None:
            self._listening.close()
            self._unlink_own_socket()
            self._listening = None
        if self._lock >= 0:
            os.close(self._state)
            os.close(self._lock)
            os.close(self._folder)
            self._lock = self._state = self._folder = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _is_socket_in_place(self) -> bool:
        return _identity_of(self._paths.socket) == self._bound

    def _return_to_run_folder(self) -> None:
        if _identity_of(self._paths.run) == _identity(os.fstat(self._folder)):
            return
        # A state folder that is gone is not made anew, and another one is not ours:
        # the journal went with it
        # (test_another_state_folder_in_its_place_is_left_to_its_own_bridge).
        vet_folder(self._paths.state)
        if _identity_of(self._paths.state) != _identity(os.fstat(self._state)):
            raise _in_the_place(
                self._paths.state, "is not the folder in which this bridge began"
            )
        make_private_folder(self._paths.run)
        folder = open_private_folder(self._paths.run)
        os.close(self._folder)
        self._folder = folder
        os.fchdir(folder)

    def _lock_again(self) -> None:
        name = self._paths.lock.name
        if _identity_of(name, self._folder) == _identity(os.fstat(self._lock)):
            return
        lock = _open_lock(self._paths, self._folder)
        try:
            # Race: a starter may hold the new file for a moment, until it meets the
            # lock of the state folder; then this is called again
            # (test_no_second_bridge_comes_in_while_the_lock_file_is_gone).
            _lock_or_say_who(lock, 1)
        except BaseException:
            os.close(lock)
            raise
        os.close(self._lock)
        self._lock = lock

    def _unlink_own_socket(self) -> None:
        name = self._paths.socket.name
        # Race: somebody may have put another socket in the place; theirs stays
        # (test_a_socket_that_is_not_ours_is_not_unlinked).
        if self._bound is not None and _identity_of(name, self._folder) == self._bound:
            os.unlink(name, dir_fd=self._folder)

    def _remove_dead_socket(self, name: str) -> None:
        try:
            present = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(present.st_mode):
            raise _in_the_place(self._paths.socket, "is not a socket")
        if _is_alive(name):
            raise _in_the_place(self._paths.socket, "belongs to another live program")
        os.unlink(name, dir_fd=self._folder)


def is_claimed(paths: Paths) -> bool:
    """True while some daemon holds the lock of this state folder."""
    try:
        lock = os.open(paths.lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Race: a starter that meets this moment of ours tries again, since the
        # pid in the file is a dead one (_lock_or_say_who).
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _open_lock(paths: Paths, folder: int) -> int:
    try:
        lock = os.open(paths.lock.name, _LOCK_FLAGS, 0o600, dir_fd=folder)
    except OSError as error:
        raise _in_the_place(paths.lock, f"cannot be opened ({error.strerror})") from (
            error
        )
    present = os.fstat(lock)
    if not stat.S_ISREG(present.st_mode) or present.st_uid != os.geteuid():
        os.close(lock)
        raise _in_the_place(paths.lock, "is not our own plain file")
    return lock


def _lock_state_folder(folder: int) -> None:
    """A second lock, which stays when somebody removes the run folder."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Unavailable(
            "already_running",
            "A bridge is already running for this state folder; its run folder was"
            " removed, and it puts that back within seconds.",
            "Try again in ten seconds.",
        ) from None
    except OSError:
        return  # some file systems lock no folders: then the lock file is all


def _lock_or_say_who(lock: int, tries: int) -> None:
    for _ in range(tries):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Race: the winner holds the lock a moment before its pid is in the
            # file, which until then names a dead process or nobody
            # (test_twelve_starters_have_one_winner).
            if pid := _live_pid_in(lock):
                raise _already_running(f" (pid {pid})") from None
            time.sleep(_PID_PAUSE_S)
            continue
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return
    raise _already_running("")


def _live_pid_in(lock: int) -> int | None:
    text = os.pread(lock, 32, 0)
    if not text.endswith(b"\n") or not text[:-1].isdigit():
        return None
    pid = int(text)
    try:
        os.kill(pid, 0)
    except OSError:  # gone, or of another user, so not the winner
        return None
    return pid


def _identity_of(place: Path | str, folder: int | None = None) -> Identity | None:
    """What is in this place now, a link not followed; None for nothing."""
    try:
        return _identity(os.stat(place, dir_fd=folder, follow_symlinks=False))
    except OSError:
        return None


def _identity(present: os.stat_result) -> Identity:
    return present.st_dev, present.st_ino


def _is_alive(name: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(name)
        except OSError as error:
            # ENOENT: it went away by itself. All else, such as a full backlog,
            # means that somebody listens.
            return error.errno not in (errno.ECONNREFUSED, errno.ENOENT)
    return True


def _already_running(who: str) -> Unavailable:
    return Unavailable(
        "already_running",
        f"A bridge is already running for this state folder{who}.",
        "Use it, or stop it first: agentworks bridge stop",
    )


def _in_the_place(path: Path, what: str) -> Refused:
    return Refused(
        "place_taken",
        f"{path} {what}, and it is left as it is.",
        "Find out whose it is, move it away, and start the bridge again.",
        exit_code=EXIT_CONFIG,
    )
