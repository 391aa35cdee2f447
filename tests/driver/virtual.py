"""Streams of a bridge over a scripted server, with time that costs nothing."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import trio
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.ids import AgentId, AttachmentId
from bridge.core.records import Attachment
from bridge.driver import resuming, stepping
from bridge.driver.bridge import Bridge
from bridge.driver.link import Link
from bridge.driver.queue import AttachmentQueue
from bridge.log import open_log
from bridge.paths import Paths
from bridge.store.leases import Leases
from bridge.upstream.api import Caller
from bridge.upstream.clients import Server, ServerAddress, open_server
from bridge.upstream.credentials import Credential, FixedToken
from tests.core.examples import BOB
from tests.fakes.clock import FakeClock
from tests.fakes.memory_journal import MemoryJournal
from tests.fakes.scripted_server import Answer, Chunk, stream

HOUR_S = 3600.0
START = 500_000_000
_NOWHERE = Path("/nonexistent")


class VirtualClock(FakeClock):
    """Goes with trio's own time; both may be moved apart from it."""

    def wall(self) -> float:
        return self.wall_s + trio.current_time()

    def running(self) -> float:
        return self.running_s + trio.current_time()

    def sleep_computer(self, seconds: float) -> None:
        """As a suspend: only the clocks that run during it have gone on."""
        self.advance(seconds)


class NoLeases(Leases):
    """No files, whose threads would let virtual time run away."""

    def __init__(self) -> None:
        self._folder = _NOWHERE

    async def erase(self, attachment_id: AttachmentId) -> None:
        """There is nothing."""


class VirtualLink(Link):
    """A link whose children have the credential that the test gives them."""

    def __init__(
        self, server: Server, credential: Credential, clock: FakeClock
    ) -> None:
        super().__init__(server, credential, NoLeases(), clock, "host-1", "x")
        self._credential = credential

    async def child(self, attachment_id: AttachmentId) -> Caller:
        return Caller(self.server, self._credential, self.parent.clock)


def attachment(number: int = 1) -> Attachment:
    """bob, or another of his kind, to whom nothing was offered yet."""
    return replace(
        BOB,
        attachment_id=AttachmentId(f"att-{number}"),
        agent_id=AgentId(f"agent-{number}"),
        name=f"bob-{number}",
        watermark=START,
        setup_at=1.0,
        guidance_at=1_790_000_000.0,
    )


@asynccontextmanager
async def virtual_bridge(
    transport: httpx.AsyncBaseTransport,
    clock: FakeClock,
    credential: Credential | None = None,
) -> AsyncIterator[Bridge]:
    """A bridge that talks to `transport`, and whose journal is in memory."""
    paths = Paths(_NOWHERE, _NOWHERE, _NOWHERE)
    async with (
        open_server(ServerAddress("http://bridge"), transport) as server,
        trio.open_nursery() as nursery,
    ):
        link = VirtualLink(server, credential or FixedToken("cnry-token"), clock)
        yield Bridge(
            paths=paths,
            clock=clock,
            journal=MemoryJournal(),
            leases=NoLeases(),
            link=link,
            log=open_log(io.StringIO(), clock),
            nursery=nursery,
            program="agentworks",
            started_at=clock.running(),
        )
        nursery.cancel_scope.cancel()


async def attached(bridge: Bridge, number: int = 1) -> AttachmentQueue:
    """An attached chat whose stream is opened."""
    record = attachment(number)
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    stepping.reopen_stream(bridge, queue)
    return queue


def watch_sleep(bridge: Bridge) -> None:
    """As the daemon does."""
    bridge.nursery.start_soon(resuming.watch_sleep, bridge)


def cursor_of(request: httpx.Request) -> int:
    """Where the stream is to start, counted as `frame` counts."""
    return int(request.headers["last-event-id"]) - START


def beats(count: int) -> list[Chunk]:
    """So many heartbeats, 10 s apart, after which the server is silent."""
    beat = b'event: alive\ndata: {"through":%d}\n\n' % (START + 999)
    return [chunk for _ in range(count) for chunk in (10.0, beat)]


def streaming(*chunks: Chunk, minutes: int = 60) -> Answer:
    """A stream that says this and then goes on living."""
    return stream([*chunks, *beats(6 * minutes)])
