"""The program that tests run as a server of its own: `alone.py SOCKET DATABASE`."""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from bridge.clock import SystemClock
from bridge.log import open_log
from bridge.server.limits import Settings
from bridge.server.run import run_alone


def main() -> None:
    """Serve until killed."""
    clock = SystemClock()
    trio.run(
        run_alone,
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        Settings(conversation_hourly=100_000),
        clock,
        open_log(sys.stderr, clock),
    )


main()
