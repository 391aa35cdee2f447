"""Running a server: embedded on a socket that is passed in, or alone on a path.

Owns the order of opening and closing. Promises that one process at a time
serves a database, that calls under way when it stops get their answer or no
effect, that everything acknowledged is on the disk, and that a database which
can no longer be trusted ends the server with StorageBroken.
"""

from __future__ import annotations

import os
import socket
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import trio

from bridge.clock import Clock
from bridge.errors import BridgeError
from bridge.log import Log
from bridge.server.app import build
from bridge.server.auth import LOCAL_ACCOUNT, LOCAL_CONNECTION, open_parent
from bridge.server.database import Database
from bridge.server.limits import Settings
from bridge.server.listening import only_server, open_listener, unlink_own
from bridge.server.presence import Presence
from bridge.server.retention import sweep
from bridge.server.rooms import Rooms, furnish
from bridge.server.store import Unit
from bridge.server.streams import mark_all_closed
from bridge.server.transport import serve_http


def bootstrap_parent(database: Path, clock: Clock) -> str:
    """The access token of account `local`, connection `oauth-local`.

    It does not expire and replaces the one given before; only its hash is
    stored. Blocks for some milliseconds. Raises StorageBroken or StorageFull.
    """
    settings = Settings()
    opened = Database(database, settings)
    try:
        return opened.transact(
            lambda sql: open_parent(
                Unit(sql, settings, clock, Presence(clock, 0.0)),
                LOCAL_ACCOUNT,
                LOCAL_CONNECTION,
                "this computer",
            ),
            writes=True,
        )
    finally:
        opened.close()


def write_parent(path: Path, token: str) -> None:
    """Keep the parent's token in a file only its owner can read (0600).

    Written beside it, flushed, then renamed: never half a file.
    """
    fresh = path.with_name(path.name + ".new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(fresh, flags, 0o600)
    with open(descriptor, "wb") as file:
        file.write(
            msgspec.json.encode(
                {
                    "account": LOCAL_ACCOUNT,
                    "connection_id": LOCAL_CONNECTION,
                    "token": token,
                }
            )
        )
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


async def serve(
    listener: socket.socket,
    database: Path,
    settings: Settings,
    clock: Clock,
    log: Log,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve on a listening socket until cancelled; closes the socket.

    The socket is bound and listening, and belongs to the server from here on.
    Started when calls are answered. Raises StorageBroken when the database
    cannot be trusted (or is served by another process: Unavailable).
    """
    with closing(listener), only_server(database):
        await _serve_locked(listener, database, settings, clock, log, task_status)


async def _serve_locked(
    listener: socket.socket,
    database: Path,
    settings: Settings,
    clock: Clock,
    log: Log,
    task_status: trio.TaskStatus[None],
) -> None:
    """Serve until cancelled; the caller holds the database's lock."""
    listener.setblocking(False)
    accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    try:
        opened = await trio.to_thread.run_sync(Database, database, settings)
        rooms = furnish(opened, settings, clock, log)
        try:
            await rooms.store.write(mark_all_closed)
            await _run(rooms, accepting, task_status)
        finally:
            await _close(rooms)
    finally:
        with trio.CancelScope(shield=True):
            await accepting.aclose()


async def _run(
    rooms: Rooms, listener: trio.SocketListener, task_status: trio.TaskStatus[None]
) -> None:
    """The nursery tree of a server; a cancellation becomes an orderly stop."""
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_shielded_http, rooms, listener, stopping, task_status)
        nursery.start_soon(_sweep_hourly, rooms)
        try:
            await rooms.store.broken.wait()
        finally:
            rooms.streams.stop()
            stopping.set()
        nursery.cancel_scope.cancel()
    if rooms.store.failure is not None:
        raise rooms.store.failure


async def _close(rooms: Rooms) -> None:
    with trio.CancelScope(shield=True):
        if rooms.store.failure is None:
            with suppress(BridgeError):
                await rooms.store.write(mark_all_closed)
        await rooms.store.close()


async def _shielded_http(
    rooms: Rooms,
    listener: trio.SocketListener,
    stopping: trio.Event,
    task_status: trio.TaskStatus[None],
) -> None:
    # Race: shielded, so that cancelling the server lets calls under way end
    # within the grace (test_a_call_under_way_is_answered_when_the_server_stops).
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rooms.hub.run)
            await serve_http(
                build(rooms),
                listener,
                rooms.settings,
                stopping,
                rooms.log,
                task_status,
            )
            nursery.cancel_scope.cancel()


async def _sweep_hourly(rooms: Rooms) -> None:
    while True:
        await trio.sleep(rooms.settings.sweep_s)
        try:
            await rooms.store.write(sweep)
            await rooms.store.checkpoint()
        except BridgeError as error:
            # Busy or full: again in an hour. Broken: the store says so itself.
            rooms.log.warning("sweep_failed", code=error.code)


async def run_alone(
    socket_path: Path,
    database: Path,
    settings: Settings,
    clock: Clock,
    log: Log,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """`server run --socket PATH`: bind, make the login, serve until cancelled.

    The parent's token is written to `parent.json` beside the database. Started when
    calls are answered.
    """
    listener = open_listener(socket_path)
    bound = os.stat(socket_path)
    try:
        # Race: a new login ends the one before, so it is made under the lock, or it
        # would end that of a bridge which serves this database itself
        # (test_a_server_that_must_not_serve_leaves_the_login_of_who_does).
        with only_server(database):
            token = await trio.to_thread.run_sync(bootstrap_parent, database, clock)
            write_parent(database.with_name("parent.json"), token)
            await _serve_locked(listener, database, settings, clock, log, task_status)
    finally:
        listener.close()
        unlink_own(socket_path, bound)
