"""One life of a daemon: its inside as bridge/daemon.py wires it, until it ends.

A life ends in order, or dies: then its disk is copied as it is at that moment,
and from then on nothing that it still does reaches anybody.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import trio
import trio.testing

from bridge.driver import hooks, restoring, resuming
from bridge.driver.bridge import Bridge
from bridge.driver.link import Link
from bridge.driver.queue import AttachmentQueue
from bridge.errors import StorageFull, Unavailable
from bridge.local.connection import Connection
from bridge.local.dialogue import HookDialogue
from bridge.local.listener import Door
from bridge.log import open_log
from bridge.paths import Paths
from bridge.peer import Peer
from bridge.upstream.clients import ServerAddress, open_server
from bridge.upstream.credentials import FixedToken
from tests.fakes.clock import FakeClock
from tests.fakes.memory_door import MemoryStream
from tests.faults.whole.disk import Disk, JournalInStep, LeasesInStep, copied
from tests.faults.whole.line import Line
from tests.faults.whole.server import MessageServer


def to_next_deadline_s() -> float:
    """How long nothing will happen by itself."""
    return max(trio.lowlevel.current_statistics().seconds_to_next_deadline, 0.001)


class Accepting(trio.abc.Listener[MemoryStream]):
    """The daemon's listening socket."""

    def __init__(self, accepted: trio.MemoryReceiveChannel[MemoryStream]) -> None:
        self._accepted = accepted

    async def accept(self) -> MemoryStream:
        """See trio.abc.Listener."""
        return await self._accepted.receive()

    async def aclose(self) -> None:
        """See trio.abc.AsyncResource."""
        await self._accepted.aclose()


class Life:
    """See the module; `folder` holds its journal, `after` the next life's."""

    def __init__(
        self, folder: Path, after: Path, leases: Path, disk: Disk, hook_pid: int
    ) -> None:
        self.folder = folder
        self._after = after
        self._leases = leases
        self._disk = disk
        self._peer = Peer(uid=os.geteuid(), pid=hook_pid)
        self._ends: list[MemoryStream] = []
        self._accepting, self._accepted = trio.open_memory_channel[MemoryStream](100)
        self._scope = trio.CancelScope()
        self.log = io.StringIO()
        self.bug: BaseException | None = None
        self.is_dead = False
        self.is_serving = False
        self.is_over = False
        self.bridge: Bridge | None = None
        self.callers: trio.Nursery | None = None

    # ---- from outside ------------------------------------------------------------

    def connect(self) -> MemoryStream:
        """A local program's end of a new connection."""
        near, far = trio.testing.memory_stream_pair()
        self._ends.append(far)
        if self.is_serving and not self.is_dead:
            self._accepting.send_nowait(far)
        else:
            _close(far)
        return near

    def die(self) -> None:
        """As kill -9 does; what runs on in here is a ghost."""
        if self.is_dead:
            return
        self.is_dead = True
        copied(self.folder, self._after)
        for stream in self._ends:
            _close(stream)
        self._scope.cancel()

    def stop(self) -> None:
        """As SIGTERM does."""
        if self.bridge is not None:
            self.bridge.stopping.set()

    def present(self) -> AttachmentQueue | None:
        """The attachment whose agent may speak now."""
        if self.bridge is None or self.is_dead:
            return None
        found = [queue for queue in self.bridge.roster if queue.is_present]
        return found[-1] if found else None

    # ---- inside -------------------------------------------------------------------

    async def run(self, server: MessageServer, clock: FakeClock) -> None:
        """The whole life; a start that finds no room is one that ends at once."""
        try:
            with self._scope:
                await self._serve(server, clock)
        except* (StorageFull, Unavailable):
            pass
        except* Exception as errors:
            self.bug = errors
        finally:
            self.is_serving = False
            self.is_over = True
            if not self.is_dead:
                self.is_dead = True
                copied(self.folder, self._after)

    async def _serve(self, server: MessageServer, clock: FakeClock) -> None:
        line = Line(server, self.folder.name, lambda: self.is_dead)
        leases = LeasesInStep(self._leases)
        address = ServerAddress("http://bridge")
        async with (
            JournalInStep.on(
                self.folder, clock, self._disk, lambda: self.is_dead, self.die
            ) as journal,
            open_server(address, line) as reached,
            trio.open_nursery() as nursery,
        ):
            link = Link(reached, FixedToken("p"), leases, clock, "host-1", "embedded")
            bridge = Bridge(
                paths=Paths(self.folder, self.folder, self.folder / "config.json"),
                clock=clock,
                journal=journal,
                leases=leases,
                link=link,
                log=open_log(self.log, clock),
                nursery=nursery,
                program="agentworks",
                started_at=clock.running(),
            )
            await restoring.restore(bridge)
            nursery.start_soon(restoring.keep_tidy, bridge)
            nursery.start_soon(resuming.watch_sleep, bridge)
            self.bridge = bridge
            await self._open_door(bridge)
            await restoring.pause(bridge)
            nursery.cancel_scope.cancel()

    async def _open_door(self, bridge: Bridge) -> None:
        async def serve(connection: Connection) -> None:
            await hooks.answer_hook(bridge, HookDialogue(connection))

        door = Door(
            serve, own_uid=os.geteuid(), log=bridge.log, identify=lambda _: self._peer
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(door.accept_forever, Accepting(self._accepted))
            self.callers = nursery
            self.is_serving = True
            await bridge.stopping.wait()
            nursery.cancel_scope.cancel()


def _close(stream: MemoryStream) -> None:
    """What was sent can still be read at the other end, as from a socket."""
    stream.send_stream.close()
    stream.receive_stream.close()
