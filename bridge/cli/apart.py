"""Starting a program of ours apart from whoever started us.

Owns the double fork. Promises that what is started stands below nobody but the
process that adopts orphans, in a session of its own, with a chosen environment
and no terminal: a coding agent above us is not above it, so whoever asks the
bridge from there is the person, as in a terminal of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

_NOT_STARTED = 127  # what a shell says of a program that could not be started
_PRIVATE_FILE = 0o600


def start_apart(
    command: Sequence[str], environment: Mapping[str, str], errors: Path
) -> int:
    """Start `command` in the folder /; a descriptor of what it prints.

    The caller closes the descriptor, which ends when the program and all that it
    started have closed their output. Its standard error goes to the file
    `errors`. Raises OSError when nothing could be started.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _leave(command, environment, errors, writing)
    os.close(writing)
    os.waitpid(child, 0)
    return reading


def _leave(
    command: Sequence[str], environment: Mapping[str, str], errors: Path, output: int
) -> NoReturn:
    """In the child: start the program in a grandchild and end."""
    try:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        os.chdir("/")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(os.open(errors, flags, _PRIVATE_FILE), 2)
        os.execve(command[0], list(command), dict(environment))  # noqa: S606 - no shell
    finally:
        os._exit(_NOT_STARTED)
