"""The embedded message server: hosted by the bridge, and down like any other.

Owns its socket in the run folder and its restarts. Promises that a server which
fails takes nothing with it: the bridge sees a server that is down, and it is
started again with growing pauses; and that one whose socket was removed listens
again within seconds.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import trio

from bridge.clock import Clock
from bridge.core import reconnect
from bridge.errors import BridgeError, single_error
from bridge.log import Log

# Relative: the run folder is the daemon's working folder, so no path is too long.
SOCKET_NAME = "server.sock"
_BACKLOG = 256
_LOOK_EVERY_S = 5.0
_SOCKET_UMASK = 0o177


def open_parent(database: Path, clock: Clock) -> str:
    """The bridge's own login at its server, made anew at each start; blocks."""
    from bridge.server.run import bootstrap_parent, write_parent

    token = bootstrap_parent(database, clock)
    write_parent(database.with_name("parent.json"), token)
    return token


async def host(database: Path, clock: Clock, log: Log, warnings: list[str]) -> None:
    """Serve until cancelled, again and again."""
    try:
        await _serve_again_and_again(database, clock, log, warnings)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(SOCKET_NAME)


async def _serve_again_and_again(
    database: Path, clock: Clock, log: Log, warnings: list[str]
) -> None:
    # Only a bridge that embeds its server pays for importing it.
    from bridge.server.limits import Settings
    from bridge.server.run import serve

    async def serving(listening: socket.socket) -> None:
        await serve(listening, database, Settings(), clock, log)

    backoff = reconnect.Backoff()
    while True:
        started = clock.running()
        try:
            with single_error():
                await _serve_while_in_place(_listener(), serving)
        except (BridgeError, OSError) as error:
            reason = _reason(error)
            log.error("server_failed", reason=reason)
            warnings[:] = [f"The embedded server is down and tried again: {reason}"]
        healthy_s = clock.running() - started
        backoff, wait_s = reconnect.failed(backoff, healthy_s, clock.random_fraction())
        await trio.sleep(wait_s)
        warnings.clear()


def _reason(error: BridgeError | OSError) -> str:
    if isinstance(error, BridgeError):
        return error.sentence()
    return f"{error.strerror or error}."


async def _serve_while_in_place(
    listening: socket.socket, serving: Callable[[socket.socket], Awaitable[None]]
) -> None:
    """Serve until the socket's name leads elsewhere; then streams are opened again."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_when_lost, nursery.cancel_scope)
        await serving(listening)
        nursery.cancel_scope.cancel()


async def _end_when_lost(scope: trio.CancelScope) -> None:
    bound = _present()
    while _present() == bound:  # noqa: ASYNC110 - no file tells us: look again
        await trio.sleep(_LOOK_EVERY_S)
    scope.cancel()


def _present() -> tuple[int, int] | None:
    try:
        found = os.stat(SOCKET_NAME, follow_symlinks=False)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _listener() -> socket.socket:
    with suppress(FileNotFoundError):
        os.unlink(SOCKET_NAME)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(_SOCKET_UMASK)
    try:
        listening.bind(SOCKET_NAME)
    finally:
        os.umask(before)
    listening.listen(_BACKLOG)
    return listening
