"""`server`: the message server by itself, for bridges that share it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import click

from bridge.cli.invocation import Invocation, global_options, verb

_DATABASE = "server.sqlite3"

server = click.Group(
    "server",
    params=global_options(),
    help="The message server alone. A bridge embeds one unless told otherwise.",
)


@verb("run")
@click.option("--socket", required=True, metavar="PATH", help="Where to listen.")
def run(invocation: Invocation, socket: str) -> None:
    """Run the message server until it is stopped.

    A bridge of the same state folder uses it with --server unix:///PATH.
    """
    import trio

    from bridge.service.own_process import shield_own_process

    paths = invocation.paths
    os.umask(0o077)
    shield_own_process()
    paths.prepare()
    # Ended by a signal is ended in order, so it is no error.
    with suppress(KeyboardInterrupt):
        trio.run(_serve, Path(os.path.abspath(socket)), paths.server / _DATABASE)


async def _serve(socket: Path, database: Path) -> None:
    import trio

    from bridge.clock import SystemClock
    from bridge.errors import BridgeError
    from bridge.log import forward_libraries, open_log
    from bridge.server.limits import Settings
    from bridge.server.run import run_alone

    clock = SystemClock()
    log = open_log(sys.stderr, clock)
    forward_libraries(log)
    failures: list[BridgeError] = []

    async def serve(scope: trio.CancelScope) -> None:
        try:
            await run_alone(socket, database, Settings(), clock, log)
        except BridgeError as error:
            failures.append(error)
            scope.cancel()

    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, nursery.cancel_scope)
            await anext(signals)
            nursery.cancel_scope.cancel()
    for failure in failures:
        raise failure


server.add_command(run)
