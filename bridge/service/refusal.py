"""Why a bridge that a service manager started will not run, for the person to see.

Owns `<state>/refused.json`. Promises that a start which no repetition can mend
leaves its reason there, that the next good start takes it away, and that a
reason which cannot be kept or read changes nothing else.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum

import msgspec
from msgspec import Struct

from bridge.clock import Clock, rfc3339
from bridge.core.visible import one_line
from bridge.errors import (
    EXIT_CONFIG,
    EXIT_OK,
    EXIT_UNREACHABLE,
    BridgeError,
    Refused,
)
from bridge.paths import Paths, read_private_file, write_private_file

ANOTHER_RUNS = "already_running"
"""The code of a start beside a bridge that runs: it will not change by waiting."""

# Starts that fail so slowly come never to systemd's limit, ten in a minute.
PAUSE_S = 8.0
_FILE_LIMIT = 16 * 1024  # bytes
_LINE_LIMIT = 4000  # characters


class Supervisor(StrEnum):
    """Who started the bridge and starts it again when it fails."""

    SYSTEMD = "systemd"
    LAUNCHD = "launchd"


class Refusal(Struct, frozen=True):
    """A start that only a person can mend; `at` is wall seconds."""

    at: float
    code: str
    message: str
    hint: str = ""


def supervised(
    paths: Paths,
    supervisor: Supervisor,
    clock: Clock,
    serve: Callable[[], int],
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """The exit code of `serve`, as this service manager has to be told.

    systemd leaves a bridge alone that ended with 78; launchd starts again whatever
    did not end with 0, every ten seconds for ever. What may pass by itself, such as
    a journal that another program holds, is tried again for as long as it takes:
    the pause before it ends keeps it from using up systemd's starts.
    """
    try:
        return serve()
    except BridgeError as error:
        sys.stderr.write(f"Error: {one_line(error.sentence(), limit=_LINE_LIMIT)}\n")
        if error.exit_code == EXIT_UNREACHABLE and error.code != ANOTHER_RUNS:
            pause(PAUSE_S)
            return error.exit_code
        if error.exit_code not in (EXIT_CONFIG, EXIT_UNREACHABLE):
            return error.exit_code
        keep(paths, error, clock)
        return EXIT_OK if supervisor is Supervisor.LAUNCHD else EXIT_CONFIG


def keep(paths: Paths, error: BridgeError, clock: Clock) -> None:
    """Write down why; where the state folder cannot be used, nobody can."""
    refusal = Refusal(clock.wall(), error.code, error.message, error.hint)
    with suppress(BridgeError, OSError):
        write_private_file(paths.refused, msgspec.json.encode(refusal))


def kept(paths: Paths) -> Refusal | None:
    """The reason that the last start left, if any."""
    with suppress(BridgeError, OSError, msgspec.MsgspecError):
        content = read_private_file(paths.refused, _FILE_LIMIT)
        if content is not None:
            return msgspec.json.decode(content, type=Refusal)
    return None


def forget(paths: Paths) -> None:
    """A start was good: there is no reason any more."""
    with suppress(OSError):
        paths.refused.unlink(missing_ok=True)


def explained(paths: Paths, not_running: BridgeError) -> BridgeError:
    """Why no bridge runs, where its last start under a manager left a reason."""
    reason = kept(paths)
    if reason is None or reason.code == ANOTHER_RUNS:
        return not_running
    return Refused(
        "start_refused",
        f"The AgentWorks bridge is not running, so nothing was done: its start at "
        f"{rfc3339(reason.at)} was refused. {reason.message}",
        f"{reason.hint} Then: agentworks up".strip(),
        exit_code=EXIT_CONFIG,
    )
