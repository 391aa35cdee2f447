"""`server`: the message server by itself, for bridges that share it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from bridge.cli.invocation import Invocation, global_options, verb
from bridge.cli.present import advise, document, say

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
    place = Path(os.path.abspath(socket))

    def tell() -> None:
        # Nobody may read it: that is no reason to end.
        with suppress(OSError):
            _tell(invocation, f"unix://{place}")

    # Ended by a signal is ended in order, so it is no error.
    with suppress(KeyboardInterrupt):
        trio.run(_serve, place, paths.server / _DATABASE, tell)


def _tell(invocation: Invocation, address: str) -> None:
    """That calls are answered, and how a bridge comes to use it."""
    if invocation.as_json:
        document({"server": address, "pid": os.getpid()})
        return
    say(f"The message server answers at {address} until it is stopped.")
    advise(
        "The bridge of this state folder uses it after: agentworks bridge restart"
        f" --server {shlex.quote(address)}"
    )


async def _serve(socket: Path, database: Path, tell: Callable[[], None]) -> None:
    import trio

    from bridge.clock import SystemClock
    from bridge.errors import single_error
    from bridge.log import forward_libraries, open_log
    from bridge.server.limits import Settings
    from bridge.server.run import run_alone
    from bridge.service.ending import until_told_to_end

    clock = SystemClock()
    log = open_log(sys.stderr, clock)
    forward_libraries(log)
    with single_error():
        async with trio.open_nursery() as nursery:

            async def end() -> None:
                await until_told_to_end()
                nursery.cancel_scope.cancel()

            nursery.start_soon(end)
            await nursery.start(run_alone, socket, database, Settings(), clock, log)
            tell()


server.add_command(run)
