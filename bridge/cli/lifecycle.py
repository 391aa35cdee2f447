"""Starting, stopping and finding the bridge from the command line.

Promises that of any number of starters one bridge comes out and all of them find
it; that `start` returns when it answers, or says why it does not; and that `stop`
returns when its lock is free.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from bridge.clock import Clock
from bridge.errors import EXIT_UNREACHABLE, Unavailable
from bridge.local.client import call
from bridge.local.instance import is_claimed
from bridge.local.replies import HelloReply, StopReply, decode_answer
from bridge.local.requests import Hello, Stop
from bridge.paths import Paths

START_S = 20.0
STOP_S = 15.0
HELLO_S = 2.0
_PAUSE_S = 0.05


def hello(paths: Paths) -> HelloReply:
    """Who runs this state folder's bridge; raises as client.call does."""
    return decode_answer(call(paths, Hello(), HELLO_S), HelloReply)


def start(
    paths: Paths,
    clock: Clock,
    arguments: Sequence[str] = (),
    command: Sequence[str] | None = None,
) -> tuple[HelloReply, bool]:
    """The running bridge, and whether this call started it.

    `arguments` go to the new bridge's command line; `command` replaces it whole.
    Raises what stands in the way: Refused (exit 78) for a wrong place or setting,
    Unavailable (exit 75) when nothing answers in time.
    """
    try:
        found = hello(paths)
    except Unavailable as error:
        if error.code != "bridge_not_running":
            raise
    else:
        if found.state != "stopping":
            return found, False
    return _start(paths, clock, arguments, command)


def _start(
    paths: Paths, clock: Clock, arguments: Sequence[str], command: Sequence[str] | None
) -> tuple[HelloReply, bool]:
    # Only a start that starts something pays for the log's library.
    from bridge.service.background import Launched, launch, own_command

    ours: Launched | None = None
    by = clock.running() + START_S
    while clock.running() < by:
        found = running(paths)
        if found is not None:
            if ours is not None:
                ours.leave()
            return found, ours is not None and found.pid == ours.pid
        if ours is not None:
            ended = ours.ended(_PAUSE_S)
            # Race: somebody else started one in the same moment and holds the
            # lock; then ours ends with 75 and theirs answers soon
            # (test_a_start_that_loses_the_race_finds_the_winner).
            if ended == EXIT_UNREACHABLE and is_claimed(paths):
                ours = None
            elif ended is not None:
                raise ours.reason(ended)
        elif is_claimed(paths):  # one that starts or stops, and will be done soon
            time.sleep(_PAUSE_S)
        else:
            ours = launch(paths, command or own_command(arguments))
    if ours is not None:
        ours.leave()
    raise Unavailable(
        "start_timeout",
        "The bridge was started and does not answer yet.",
        f"Look at its log: {paths.log / 'bridge.log'}",
    )


def running(paths: Paths) -> HelloReply | None:
    """The bridge that answers and goes on doing so, or None."""
    try:
        answer = hello(paths)
    except Unavailable:
        return None
    return None if answer.state == "stopping" else answer


def stop(paths: Paths, clock: Clock) -> int | None:
    """Stop the bridge and wait until it has let go; its pid, None without one.

    Raises Unavailable (exit 75) when it still holds its lock after STOP_S.
    """
    try:
        pid = decode_answer(call(paths, Stop()), StopReply).pid
    except Unavailable as error:
        if error.code != "bridge_not_running":
            raise
        return None
    by = clock.running() + STOP_S
    while is_claimed(paths):
        if clock.running() > by:
            raise Unavailable(
                "still_stopping",
                f"The bridge (pid {pid}) was told to stop and has not ended yet.",
                "Look again in a moment: agentworks bridge status",
            )
        time.sleep(_PAUSE_S)
    return pid
