"""The message server with limits that no benchmark meets.

python -m tests.benchmarks.serve SOCKET
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import trio

from bridge.clock import SystemClock
from bridge.log import open_log
from bridge.paths import locate
from bridge.server.limits import Settings
from bridge.server.run import run_alone

MANY = 1_000_000


async def serve(socket: Path) -> None:
    clock = SystemClock()
    settings = Settings(
        conversation_hourly=MANY,
        conversation_messages=MANY,
        names=MANY,
        names_per_account=MANY,
        streams=MANY,
        connections=MANY,
    )
    database = locate().server / "server.sqlite3"
    log = open_log(sys.stderr, clock)
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_alone, socket, database, settings, clock, log)
            await anext(signals)
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(serve, Path(sys.argv[1]))
