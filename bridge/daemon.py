"""The daemon: opens, wires and closes in order; it decides nothing.

Owns one nursery tree. Promises the order of opening (umask, folders, lock,
journal, server, attachments, door) and of closing (no more accepts, offers in
flight end, streams, server, journal, our own socket), so that a second bridge
never meets the first one's files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from trio import to_thread

from bridge.clock import Clock, SystemClock
from bridge.config import Settings
from bridge.driver import (
    adapters,
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
from bridge.driver.parent import other_server
from bridge.errors import (
    EXIT_OK,
    Refused,
    StorageBroken,
    disk_named,
    single_error,
)
from bridge.local.calls import serve_calls
from bridge.local.connection import Connection
from bridge.local.dialogue import HookDialogue
from bridge.local.instance import Instance
from bridge.local.listener import Door
from bridge.local.place import keep_in_place
from bridge.local.requests import AnyRequest
from bridge.local.stream import LocalListener
from bridge.log import Log, forward_libraries, open_log
from bridge.paths import Paths
from bridge.peer import Peer
from bridge.routes.notification import Desktop
from bridge.service import refusal
from bridge.service.ending import until_told_to_end
from bridge.service.notify import Notifier
from bridge.service.own_process import shield_own_process
from bridge.service.watchdog import keep_fed
from bridge.store.journal import Journal
from bridge.store.leases import Leases
from bridge.upstream.clients import embedded, open_server
from bridge.upstream.credentials import Credential, FixedToken

SWITCH_S = 0.0001


def run(paths: Paths, settings: Settings, notifier: Notifier | None = None) -> int:
    """Serve until stopped; the exit code. Raises BridgeError when it cannot.

    `notifier` tells the service manager that started us, if one did.
    """
    os.umask(0o077)
    # The server's threads run Python as well. A hook reads some twenty files of the
    # kernel, and after each it waits for its turn: 20 to 30 ms in all with the usual
    # 5 ms, 12 to 14 with this, while 200 streams are woken (make bench).
    sys.setswitchinterval(SWITCH_S)
    shield_own_process()
    with disk_named(paths.state):
        paths.prepare()
        claimed = Instance.claim(paths)
    clock = SystemClock()
    log = open_log(sys.stderr, clock)
    forward_libraries(log)
    with claimed as instance, single_error():
        told = notifier or Notifier()
        broken = trio.run(_serve, paths, settings, clock, log, instance, told)
    if broken is not None:
        raise broken
    return EXIT_OK


async def _serve(
    paths: Paths,
    settings: Settings,
    clock: Clock,
    log: Log,
    instance: Instance,
    notifier: Notifier,
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
            may_wake=settings.wake != "never",
            desktop=Desktop(os.environ) if settings.notify != "never" else None,
        )
        await restoring.restore(bridge)
        nursery.start_soon(restoring.keep_tidy, bridge)
        nursery.start_soon(resuming.watch_sleep, bridge)
        nursery.start_soon(_stop_on_signal, bridge)
        bridge.start(keep_fed, notifier, journal.ping, log)
        await _open_door(bridge, instance, notifier)
        await notifier.say("STOPPING=1", "STATUS=Stopping.")
        await restoring.pause(bridge)
        nursery.cancel_scope.cancel()
    return bridge.broken


async def _open_door(bridge: Bridge, instance: Instance, notifier: Notifier) -> None:
    """Serve local programs until the bridge is to stop."""

    async def serve(connection: Connection) -> None:
        await _serve_one(bridge, connection)

    door = Door(serve, own_uid=os.geteuid(), log=bridge.log)
    with disk_named(bridge.paths.run):
        listening = LocalListener(instance.listen())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.accept_forever, listening)
        nursery.start_soon(keep_in_place, instance, listening, bridge.log)
        bridge.log.info("serving", pid=os.getpid(), server=bridge.link.name)
        refusal.forget(bridge.paths)
        await notifier.say("READY=1", f"STATUS=Serving; server: {bridge.link.name}.")
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
        case "route" if len(connection.header.words) == 2:
            await adapters.serve_route(bridge, connection)
        case verb:
            raise Refused("unknown_verb", f"This bridge does not know {verb!r}.")


async def _stop_on_signal(bridge: Bridge) -> None:
    await until_told_to_end()
    bridge.stopping.set()


# ---- the message server ------------------------------------------------------------


@asynccontextmanager
async def _link(
    paths: Paths, settings: Settings, clock: Clock, log: Log, warnings: list[str]
) -> AsyncIterator[Link]:
    leases = Leases(paths.leases)
    with disk_named(paths.state):
        host_id = computer.host_id(paths)
    async with trio.open_nursery() as nursery:
        if settings.is_embedded:
            database = paths.server / "server.sqlite3"
            with disk_named(paths.server):
                token = await to_thread.run_sync(hosting.open_parent, database, clock)
            nursery.start_soon(hosting.host, database, clock, log, warnings)
            address, name = embedded(Path(hosting.SOCKET_NAME)), "embedded"
            parent: Credential = FixedToken(token)
        else:
            address, parent = other_server(paths, settings)
            name = settings.server
        async with open_server(address) as server:
            yield Link(server, parent, leases, clock, host_id, name)
        nursery.cancel_scope.cancel()
