"""The daemon: opens, wires and closes in order; it decides nothing.

Owns one nursery tree. Promises the order of opening (umask, folders, lock,
journal, server, attachments, door) and of closing (no more accepts, offers in
flight end, streams, server, journal, our own socket), so that a second bridge
never meets the first one's files.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import trio

from bridge.clock import Clock, SystemClock
from bridge.config import Settings
from bridge.driver import (
    calls,
    children,
    computer,
    hooks,
    hosting,
    restoring,
    resuming,
)
from bridge.driver.bridge import Bridge
from bridge.driver.link import Link
from bridge.errors import (
    EXIT_CONFIG,
    EXIT_OK,
    Refused,
    StorageBroken,
    single_error,
)
from bridge.local.calls import serve_calls
from bridge.local.connection import Connection
from bridge.local.dialogue import HookDialogue
from bridge.local.instance import Instance
from bridge.local.listener import Door
from bridge.local.peer import Peer
from bridge.local.requests import AnyRequest
from bridge.local.stream import LocalListener
from bridge.log import Log, forward_libraries, open_log
from bridge.paths import Paths, read_private_file
from bridge.store.journal import Journal
from bridge.store.leases import Leases
from bridge.upstream.clients import ServerAddress, embedded, open_server, remote
from bridge.upstream.credentials import Credential, FixedToken, ReadToken

UNIX = "unix://"
_SMALL_FILE = 64 * 1024


def run(paths: Paths, settings: Settings) -> int:
    """Serve until stopped; the exit code. Raises BridgeError when it cannot."""
    os.umask(0o077)
    paths.prepare()
    clock = SystemClock()
    log = open_log(sys.stderr, clock)
    forward_libraries(log)
    with Instance.claim(paths) as instance, single_error():
        broken = trio.run(_serve, paths, settings, clock, log, instance)
    if broken is not None:
        raise broken
    return EXIT_OK


async def _serve(
    paths: Paths, settings: Settings, clock: Clock, log: Log, instance: Instance
) -> StorageBroken | None:
    warnings: list[str] = []
    async with (
        await Journal.open(paths.journal, clock) as journal,
        _link(paths, settings, clock, log, warnings) as link,
        trio.open_nursery() as nursery,
    ):
        bridge = Bridge(
            paths=paths,
            clock=clock,
            journal=journal,
            leases=Leases(paths.leases),
            link=link,
            log=log,
            nursery=nursery,
            program=computer.program(),
            started_at=clock.running(),
            warnings=warnings,
        )
        await restoring.restore(bridge)
        nursery.start_soon(restoring.keep_tidy, bridge)
        nursery.start_soon(resuming.watch_sleep, bridge)
        nursery.start_soon(_stop_on_signal, bridge)
        await _open_door(bridge, instance)
        await restoring.pause(bridge)
        nursery.cancel_scope.cancel()
    return bridge.broken


async def _open_door(bridge: Bridge, instance: Instance) -> None:
    """Serve local programs until the bridge is to stop."""

    async def serve(connection: Connection) -> None:
        await _serve_one(bridge, connection)

    door = Door(serve, own_uid=os.geteuid(), log=bridge.log)
    listening = LocalListener(instance.listen())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.accept_forever, listening)
        bridge.log.info("serving", pid=os.getpid(), server=bridge.link.name)
        await bridge.stopping.wait()
        nursery.cancel_scope.cancel()


async def _serve_one(bridge: Bridge, connection: Connection) -> None:
    match connection.header.verb:
        case "hook" if len(connection.header.words) >= 2:
            await hooks.answer_hook(bridge, HookDialogue(connection))
        case "call":

            async def answer(peer: Peer, request: AnyRequest) -> object:
                return await calls.answer_call(bridge, peer, request)

            await serve_calls(connection, answer)
        case "mcp":
            await children.serve_child(bridge, connection)
        case verb:
            raise Refused("unknown_verb", f"This bridge does not know {verb!r}.")


async def _stop_on_signal(bridge: Bridge) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            bridge.stopping.set()


# ---- the message server ------------------------------------------------------------


@asynccontextmanager
async def _link(
    paths: Paths, settings: Settings, clock: Clock, log: Log, warnings: list[str]
) -> AsyncIterator[Link]:
    leases = Leases(paths.leases)
    host_id = computer.host_id(paths)
    async with trio.open_nursery() as nursery:
        if settings.is_embedded:
            database = paths.server / "server.sqlite3"
            token = await trio.to_thread.run_sync(hosting.open_parent, database, clock)
            nursery.start_soon(hosting.host, database, clock, log, warnings)
            address, name = embedded(Path(hosting.SOCKET_NAME)), "embedded"
            parent: Credential = FixedToken(token)
        else:
            address, parent = _chosen(paths, settings)
            name = settings.server
        async with open_server(address) as server:
            yield Link(server, parent, leases, clock, host_id, name)
        nursery.cancel_scope.cancel()


def _chosen(paths: Paths, settings: Settings) -> tuple[ServerAddress, Credential]:
    """Another server than our own: its address, and our login there."""
    if settings.server.startswith(UNIX):
        path = Path(settings.server.removeprefix(UNIX))
        return embedded(path), ReadToken(partial(_parent_token, paths))
    if settings.credentials is None:
        raise Refused(
            "not_signed_in",
            f"There is no login for {settings.server}, so the bridge cannot use it.",
            "Leave --server out to use the embedded server.",
            exit_code=EXIT_CONFIG,
        )
    return remote(settings.server), FixedToken(settings.credentials.access_token)


def _parent_token(paths: Paths) -> str:
    """The login that a server run alone in this state folder left for us."""
    content = read_private_file(paths.parent_token, _SMALL_FILE)
    if content is None:
        raise Refused(
            "not_signed_in",
            f"{paths.parent_token} is missing, so the bridge has no login.",
            "Start the server first, with the same state folder.",
            exit_code=EXIT_CONFIG,
        )
    return str(msgspec.json.decode(content)["token"])
