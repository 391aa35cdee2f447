"""A message server alone: python run_server.py SOCKET DATABASE [LIMITS].

LIMITS is a JSON object of the server's own settings.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import trio

from bridge.clock import SystemClock
from bridge.log import open_log
from bridge.server.limits import Settings
from bridge.server.run import run_alone


async def serve(socket: Path, database: Path, settings: Settings) -> None:
    """Serve until SIGTERM."""
    clock = SystemClock()
    async with trio.open_nursery() as nursery:
        log = open_log(sys.stderr, clock)
        nursery.start_soon(run_alone, socket, database, settings, clock, log)
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                nursery.cancel_scope.cancel()


if __name__ == "__main__":
    os.umask(0o077)
    chosen = Settings(**json.loads(sys.argv[3] if len(sys.argv) > 3 else "{}"))
    trio.run(serve, Path(sys.argv[1]), Path(sys.argv[2]), chosen)
