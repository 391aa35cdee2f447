"""Starting a program of ours apart from whoever started us.

Owns the double fork. Promises that what is started stands below nobody but the
process that adopts orphans, in a session of its own, with a chosen environment
and no terminal: a coding agent above us is not above it, so whoever asks the
bridge from there is the person, as in a terminal of their own. Promises too that
it does not outlive our interest in it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn

_NOT_STARTED = 127  # what a shell says of a program that could not be started
_PRIVATE_FILE = 0o600
_PID_LIMIT = 20  # bytes


@contextmanager
def started_apart(
    command: Sequence[str], environment: Mapping[str, str], errors: Path
) -> Iterator[IO[bytes]]:
    """Start `command` in the folder /; a file of what it prints.

    The file ends when the program, and all that it started, have closed their
    output; its standard error goes to the file `errors`. An exception in the block
    sends it SIGTERM, then waits for that end. Raises OSError when nothing could be
    started.
    """
    pid, output = _start(command, environment, errors)
    with open(output, "rb") as printed:
        try:
            yield printed
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            printed.read()
            raise


def _start(
    command: Sequence[str], environment: Mapping[str, str], errors: Path
) -> tuple[int, int]:
    """Its pid, and a descriptor of what it prints."""
    reading, writing = os.pipe()
    told, tell = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _leave(command, environment, errors, writing, tell)
    os.close(writing)
    os.close(tell)
    os.waitpid(child, 0)
    with open(told, "rb") as line:
        return int(line.read(_PID_LIMIT)), reading


def _leave(
    command: Sequence[str],
    environment: Mapping[str, str],
    errors: Path,
    output: int,
    tell: int,
) -> NoReturn:
    """In the child: start the program in a grandchild, tell its pid, and end."""
    try:
        os.setsid()
        pid = os.fork()
        if pid > 0:
            os.write(tell, b"%d" % pid)
            os._exit(0)
        os.chdir("/")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(os.open(errors, flags, _PRIVATE_FILE), 2)
        os.execve(command[0], list(command), dict(environment))  # noqa: S606 - no shell
    finally:
        os._exit(_NOT_STARTED)
