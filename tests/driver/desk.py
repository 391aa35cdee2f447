"""A queue over a real journal, for tests of what the driver promises."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from msgspec.structs import replace

from bridge.core import release
from bridge.core.effects import SaveAttachment
from bridge.core.events import Received
from bridge.core.records import Attachment, Message, OfferOutcome
from bridge.core.render import Budget
from bridge.driver.bridge import Bridge
from bridge.driver.link import Link
from bridge.driver.offering import Occasion
from bridge.driver.queue import AttachmentQueue
from bridge.log import open_log
from bridge.paths import Paths
from bridge.store.journal import Journal
from bridge.store.leases import Leases
from bridge.upstream.clients import embedded, open_server
from bridge.upstream.credentials import FixedToken
from tests.core.examples import BOB, message
from tests.fakes.clock import FakeClock
from tests.fakes.message_server import Served

OCCASION = Occasion("hook", Budget("utf16", 9_500), "agentworks")


class Route:
    """A route that answers as it is told and keeps what it was handed."""

    def __init__(self, *outcomes: OfferOutcome) -> None:
        self._outcomes = list(outcomes)
        self.texts: list[str] = []

    async def emit(self, offer_id: str, text: str) -> OfferOutcome:
        """Take the text; the next outcome."""
        self.texts.append(text)
        return self._outcomes.pop(0)


class Desk:
    """One attached queue, its journal and its clock."""

    def __init__(self, journal: Journal, clock: FakeClock, record: Attachment) -> None:
        self.journal = journal
        self.clock = clock
        self.queue = AttachmentQueue(record, (), (), (), journal, clock)

    async def receive(self, number: int = 1, body: str = "Ready for review.") -> None:
        """The stream brings a message and the server stands by it."""
        arriving = incoming(number, body)
        async with self.queue.turn:
            event = Received(self.clock.wall(), arriving, True)
            await self.queue.take([(arriving.message_id, event)])
        self.queue.releases = release.arrived(
            self.queue.releases, [arriving.message_id], self.clock.running()
        )


@asynccontextmanager
async def open_desk(
    folder: Path, *, introduced: bool = True, kind: type[Journal] = Journal
) -> AsyncIterator[Desk]:
    """A desk in a scratch folder; `introduced`: setup and guidance were given."""
    clock = FakeClock()
    at = clock.wall() if introduced else None
    record = _with(BOB, at)
    async with await kind.open(folder / "journal.sqlite3", clock) as journal:
        await journal.commit([SaveAttachment(record)])
        yield Desk(journal, clock, record)


def _with(record: Attachment, at: float | None) -> Attachment:
    return replace(record, setup_at=at, guidance_at=at)


@asynccontextmanager
async def open_bridge(
    folder: Path, kind: type[Journal] = Journal, served: Served | None = None
) -> AsyncIterator[Bridge]:
    """A bridge over a real journal; its message server is the one of `served`.

    Without `served` nobody listens at the server's socket.
    """
    clock = served.clock if served is not None else FakeClock()
    token = served.token if served is not None else "none"
    paths = Paths(folder / "config", folder / "state", folder / "config" / "c.json")
    paths.state.mkdir(mode=0o700, exist_ok=True)
    leases = Leases(paths.state / "leases")
    async with (
        await kind.open(folder / "journal.sqlite3", clock) as journal,
        open_server(embedded(folder / "server.sock")) as server,
        trio.open_nursery() as nursery,
    ):
        link = Link(server, FixedToken(token), leases, clock, "host-1", "embedded")
        log = open_log(io.StringIO(), clock)
        yield Bridge(
            paths, clock, journal, leases, link, log, nursery, "agentworks", 0.0
        )
        nursery.cancel_scope.cancel()


def incoming(number: int = 1, body: str = "Ready for review.") -> Message:
    """The message as the stream brings it."""
    row = message(number, body)
    return Message(
        row.message_id,
        row.sequence,
        row.inbox_id,
        row.inbox_id,
        row.sender,
        row.sent_at,
        body,
    )


def advance(bridge: Bridge, seconds: float) -> None:
    """Let time pass on the bridge's own clock."""
    assert isinstance(bridge.clock, FakeClock)
    bridge.clock.advance(seconds)
