"""A mailbox that fills its attachment to the real limits, and is drained again.

A real server on its socket, a real journal, and the hook's own dialogue; only the
clocks stand still, and the server's heart beats faster.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from bridge.core import quota
from bridge.core.effects import SaveAttachment
from bridge.core.ids import MessageId
from bridge.core.records import DeliveryState, OfferOutcome
from bridge.driver import attaching, offering, persons, verbs
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.providers import process
from bridge.providers.script import BUDGET
from bridge.server import agents, messages
from bridge.server.auth import LOCAL_ACCOUNT
from bridge.server.limits import Settings
from bridge.server.parties import Side, agent_side
from bridge.server.store import Unit
from tests.driver.desk import Route, advance, open_bridge
from tests.driver.test_hooks import stop_hook
from tests.fakes.clock import FakeClock
from tests.fakes.memory_door import MemoryStream
from tests.fakes.message_server import Lease, Served, good, served

ROWS = 2_000
AT_ONCE = 20  # what one turn end brings at most
MIB = 1024 * 1024
TOTAL_BYTES = 32 * MIB
# The longest message there is, in characters of four bytes.
LARGEST = "\N{GRINNING FACE}" * 20_000
LARGEST_BYTES = 80_000
# Enough of them that no conversation meets its own limit.
SENDERS = 20
SERVER = Settings(heartbeat_s=0.05)
OCCASION = offering.Occasion("hook", BUDGET, "agentworks")
NET_S = 120.0
OPENED = re.compile(r"^\[[0-9a-f]{16,}\] message \d+ of \d+ from .*$", re.MULTILINE)
NUMBERED = re.compile(r"^number (\d+)$", re.MULTILINE)


pytestmark = pytest.mark.crash


@asynccontextmanager
async def open_house(folder: Path) -> AsyncIterator[tuple[Bridge, Served]]:
    """A bridge with its real limits, and a server that lets a mailbox fill."""
    async with (
        served(folder, SERVER, FakeClock()) as server,
        open_bridge(folder, served=server) as bridge,
    ):
        assert bridge.limits == quota.Limits(ROWS, TOTAL_BYTES, MIB)
        yield bridge, server


async def attach(bridge: Bridge, name: str, session_id: str = "") -> AttachmentQueue:
    """This very process, attached as a script that knows how messages work."""
    facts = process.facts_of(os.getpid())
    assert facts is not None
    key = process.key_of(facts)
    wish = attaching.Wish("script", session_id or key.text(), key, name)
    done = await attaching.attach(bridge, wish)
    queue = bridge.roster.get(done.record.attachment_id)
    assert queue is not None
    introduced = replace(queue.record, setup_at=1.0, guidance_at=bridge.clock.wall())
    async with queue.turn:
        await queue.commit([SaveAttachment(introduced)])
    return queue


class Crowd:
    """Agents that take turns in writing to one name."""

    def __init__(self, server: Served, leases: list[Lease]) -> None:
        self._server = server
        self._leases = leases

    async def write(self, target: str, bodies: list[str]) -> None:
        """As if they had sent all of these in this order; one commit."""

        def work(unit: Unit) -> None:
            sides = [self._side(unit, lease) for lease in self._leases]
            for number, body in enumerate(bodies):
                outgoing = messages.Outgoing(message=body, target=target)
                messages.send(unit, *sides[number % SENDERS], outgoing)

        await self._server.change(work)

    def _side(self, unit: Unit, lease: Lease) -> tuple[Side, str]:
        row = agents.by_name(unit, LOCAL_ACCOUNT, lease.answer["name"])
        assert row is not None
        return agent_side(row), lease.child["connection_id"]


async def crowd(server: Served) -> Crowd:
    leases = [await server.attach(f"writer-{number}") for number in range(SENDERS)]
    return Crowd(server, leases)


def numbered(first: int, last: int, tail: str = "") -> list[str]:
    return [f"number {number}\n{tail}" for number in range(first, last + 1)]


async def until(is_so: Callable[[], bool], what: str) -> None:
    with trio.move_on_after(NET_S):
        while not is_so():  # noqa: ASYNC110 - many things change it
            await trio.sleep(0.01)
        return
    raise AssertionError(f"never happened: {what}")


def stands_at_the_wall(queue: AttachmentQueue) -> bool:
    """It is full, and what still found room is saved."""
    return queue.is_full and not queue.turn.locked()


def pending(queue: AttachmentQueue) -> list[int]:
    """The numbers of what waits, in order."""
    return [_number(row.body or "") for row in queue.in_state(DeliveryState.PENDING)]


def _number(text: str) -> int:
    found = NUMBERED.search(text)
    return int(found[1]) if found else 0


class Turns:
    """One turn end after the other, each answered as a hook that prints it."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._ended = 0
        self.seen: list[int] = []

    async def end(self) -> bool:
        """The next turn ends; was anything printed?"""
        self._ended += 1
        hook = await stop_hook(self._bridge, f"{self._ended}".encode())
        text = await _printed(hook)
        await hook.send_all(b"AW1 printed 0\n")
        self.seen += [int(number) for number in NUMBERED.findall(text)]
        assert len(OPENED.findall(text)) <= 20
        return bool(text)


async def _printed(hook: MemoryStream) -> str:
    received = b""
    with trio.fail_after(NET_S):
        while True:
            received += bytes(await hook.receive_some())
            for length, end in _print_frames(received):
                if len(received) >= end + length:
                    return received[end : end + length].decode()


def _print_frames(received: bytes) -> Iterator[tuple[int, int]]:
    for found in re.finditer(rb"AW1 print \d \w+ (\d+)\n", received):
        yield int(found[1]), found.end()


async def acknowledge_all(bridge: Bridge, queue: AttachmentQueue) -> None:
    await queue.wait_for_offer()
    for row in queue.in_state(DeliveryState.OFFERED):
        await verbs.ack(bridge, queue, row.message_id, "processed")


async def heart_has_beaten(bridge: Bridge, queue: AttachmentQueue) -> None:
    """All words of the server are old, and then it renews them."""
    advance(bridge, 31)
    assert queue.releasable() == []
    waiting = len(queue.in_state(DeliveryState.PENDING))
    await until(lambda: len(queue.releasable()) == waiting, "a heartbeat")


async def test_a_full_attachment_stops_messages_and_nothing_else_and_loses_nothing(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, server):
        writers, carol = await crowd(server), await server.attach("carol")
        good(await server.call("register", agent_name="bob"))
        await writers.write("bob", numbered(1, 500))
        good(await carol.send("bob", "number 9999", "from-carol"))
        await writers.write("bob", numbered(501, 2_100))
        queue = await attach(bridge, "bob")
        await until(lambda: stands_at_the_wall(queue), "the wall")

        # Exactly 2,000, the oldest; the rest is at the server.
        order = [*range(1, 501), 9999, *range(501, 2_101)]
        assert pending(queue) == order[:ROWS]
        (row,) = persons.status(bridge).attachments
        assert "no room for more" in row.why
        assert "There was no room for another message of bob" in row.note
        (told,) = persons.status(bridge).told
        assert "There was no room for another message of bob" in told

        # Heartbeats and retractions still come, and nothing else.
        await heart_has_beaten(bridge, queue)
        good(await server.call("unregister", agent_name="carol"))
        await until(lambda: 9999 not in pending(queue), "the retraction")
        assert len(pending(queue)) == ROWS - 1
        # What the agent says always has room.
        first = queue.in_state(DeliveryState.PENDING)[0]
        await verbs.ack(bridge, queue, first.message_id, "processed")
        foreign = MessageId("msg-read-by-hand")
        await verbs.ack(bridge, queue, foreign, "admitted")
        await until(lambda: not queue.unsent_receipts(), "the receipts at the server")

        # Above four fifths nothing more is asked for, below it the rest comes.
        turns = Turns(bridge)
        while len(pending(queue)) > 0.8 * ROWS + AT_ONCE:
            await turns.end()
            await acknowledge_all(bridge, queue)
        await heart_has_beaten(bridge, queue)
        assert queue.is_full
        await turns.end()
        await acknowledge_all(bridge, queue)
        await until(lambda: not queue.is_full, "room again")
        await until(lambda: pending(queue)[-1] == 2_100, "the rest")
        assert "There is room again for the messages of bob" in bridge.told[-1]

        # Nothing is lost, nothing comes twice, and the order is the server's.
        while await turns.end():
            await acknowledge_all(bridge, queue)
        assert turns.seen == list(range(2, 2_101))
        assert pending(queue) == []
        (row,) = persons.status(bridge).attachments
        assert (row.pending, row.unacknowledged, row.why, row.note) == (0, 0, "", "")


async def test_bodies_fill_32_mib_in_all_and_nobody_loses_any(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, server):
        writers = await crowd(server)
        counts = {"greedy": 430, "modest": 40, "late": 40}
        for name, count in counts.items():
            good(await server.call("register", agent_name=name))
            await writers.write(name, numbered(1, count, LARGEST[:-12]))

        # 31 MiB are for the first, the last one is for whoever comes.
        greedy = await attach(bridge, "greedy", "one")
        await until(lambda: stands_at_the_wall(greedy), "the first wall")
        assert 31 * MIB - LARGEST_BYTES < held(greedy) <= 31 * MIB
        assert len(greedy.deliveries) < ROWS
        modest = await attach(bridge, "modest", "two")
        await until(lambda: stands_at_the_wall(modest), "the second wall")
        assert MIB - LARGEST_BYTES < held(modest) <= MIB
        late = await attach(bridge, "late", "three")
        await until(lambda: stands_at_the_wall(late), "the third wall")
        assert held(greedy, modest, late) > TOTAL_BYTES - 2 * LARGEST_BYTES
        rows = persons.status(bridge).attachments
        assert len(rows) == 3
        assert all("no room for more" in row.why for row in rows)

        # At the wall there is room for what the agent says.
        first = greedy.in_state(DeliveryState.PENDING)[0]
        await verbs.ack(bridge, greedy, first.message_id, "admitted")
        await until(lambda: not greedy.unsent_receipts(), "the receipt at the server")

        seen = {"greedy": [1], "modest": list[int](), "late": list[int]()}
        with trio.fail_after(NET_S):
            while any(len(seen[name]) < counts[name] for name in counts):
                for queue in (greedy, modest, late):
                    seen[queue.record.name] += await take_one(bridge, queue)
                assert held(greedy, modest, late) <= TOTAL_BYTES
                await trio.sleep(0.001)
        assert seen == {
            name: list(range(1, count + 1)) for name, count in counts.items()
        }
        assert not any(queue.is_full for queue in (greedy, modest, late))


def held(*queues: AttachmentQueue) -> int:
    return sum(queue.usage().body_bytes for queue in queues)


async def take_one(bridge: Bridge, queue: AttachmentQueue) -> list[int]:
    """The next one is offered, or, once it is clear how that goes, read by hand."""
    waiting = pending(queue)
    if not waiting:
        return []
    if len(queue.deliveries) - len(waiting) < 8:
        route = Route(OfferOutcome.EMITTED)
        await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)
        return [
            int(number) for text in route.texts for number in NUMBERED.findall(text)
        ]
    first = queue.in_state(DeliveryState.PENDING)[0]
    await verbs.ack(bridge, queue, first.message_id, "processed")
    return waiting[:1]
