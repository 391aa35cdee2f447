"""Who may bring a chat's way, and what becomes of it when a connection ends."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.ids import SessionId
from bridge.core.records import AttachmentState, DeliveryState, ProcessKey
from bridge.driver import adapters, identity, receiving
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import Invalid, Refused
from bridge.local.connection import Connection
from bridge.peer import Peer
from bridge.providers import process
from tests.core.examples import BOB
from tests.driver.desk import incoming, open_bridge
from tests.fakes.memory_door import MemoryStream
from tests.real_clients.rig.waiting import wait_until

CHAT = "01a22992-56e5-77f8-be2b-74eccac1b491"
OTHER = "01a22992-ffff-77f8-be2b-74eccac1b491"


class Program:
    """A process that looks like the provider's own, and does nothing."""

    def __init__(self, folder: Path, name: str) -> None:
        file = folder / name
        shutil.copy("/bin/sleep", file)
        self._process = subprocess.Popen([name, "60"], executable=file)
        self.pid = self._process.pid

    @property
    def key(self) -> ProcessKey:
        facts = process.facts_of(self.pid)
        assert facts is not None
        return process.key_of(facts)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def pi(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path, "pi")
    yield program
    program.end()


@pytest.fixture
def opencode(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path, "opencode")
    yield program
    program.end()


async def attached(
    bridge: Bridge, program: Program, provider: str = "pi", session_id: str = CHAT
) -> AttachmentQueue:
    record = replace(
        BOB,
        provider=provider,
        process_key=program.key,
        session_id=SessionId(session_id),
        setup_at=1.0,
        guidance_at=1_790_000_000.0,
    )
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    return queue


async def connection_of(pid: int, header: bytes) -> tuple[MemoryStream, Connection]:
    near, far = trio.testing.memory_stream_pair()
    await near.send_all(header)
    connection = Connection(
        far, Peer(uid=os.geteuid(), pid=pid), trio.current_time() + 5
    )
    await connection.receive_first_header()
    return near, connection


class Extension:
    """The extension's side of one connection."""

    def __init__(self, stream: MemoryStream) -> None:
        self._stream = stream
        self._received = b""

    async def offer(self) -> dict[str, str]:
        """The next offer that it is handed."""
        while b"\n" not in self._received:
            chunk = await self._stream.receive_some()
            assert chunk, "the bridge closed the connection"
            self._received += bytes(chunk)
        line, _, self._received = self._received.partition(b"\n")
        return msgspec.json.decode(line, type=dict[str, str])

    async def say(self, **said: object) -> None:
        await self._stream.send_all(msgspec.json.encode(said) + b"\n")

    async def close(self) -> None:
        await self._stream.aclose()

    async def is_closed(self) -> bool:
        """Until the bridge has closed it."""
        return not await self._stream.receive_some()


@asynccontextmanager
async def connected(
    bridge: Bridge, pid: int, provider: str = "pi", session_id: str = CHAT
) -> AsyncIterator[Extension]:
    near, connection = await connection_of(
        pid, f"AW1 route {provider} {session_id} 0\n".encode()
    )

    async def serve() -> None:
        try:
            await adapters.serve_route(bridge, connection)
        finally:
            await connection.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await trio.testing.wait_all_tasks_blocked(0.01)
        yield Extension(near)
        await near.aclose()


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked(0.01)


async def bring(bridge: Bridge, queue: AttachmentQueue, number: int) -> None:
    page = [incoming(number)]
    await receiving.receive_page(bridge, queue, page, bridge.clock.running())


def states(queue: AttachmentQueue) -> list[DeliveryState]:
    return [row.state for row in queue.deliveries.values()]


async def test_a_connected_extension_is_handed_the_mail_of_its_chat(
    tmp_path: Path, pi: Program
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, pi)
        async with connected(bridge, pi.pid) as extension:
            address = f"pi+extension://{pi.pid}/{CHAT}"
            await wait_until(lambda: queue.record.native_route == address, address)
            await bring(bridge, queue, 1)
            handed = await extension.offer()
            await extension.say(emitted=handed["offer"])
            await queue.wait_for_offer()

            assert "Ready for review." in handed["text"]
            assert states(queue) == [DeliveryState.OFFERED]


async def test_whether_its_chat_is_idle_is_the_extensions_word(
    tmp_path: Path, pi: Program
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, pi)
        async with connected(bridge, pi.pid) as extension:
            for is_idle in (True, False, True):
                await extension.say(idle=is_idle)
                await settled()
                assert queue.is_idle is is_idle


async def test_an_extension_that_goes_away_takes_its_way_with_it(
    tmp_path: Path, pi: Program
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, pi)
        async with connected(bridge, pi.pid):
            assert bridge.adapters
        await settled()

        assert bridge.adapters == {}
        assert queue.record.native_route == ""
        await bring(bridge, queue, 1)
        assert states(queue) == [DeliveryState.PENDING]


async def test_a_newer_connection_of_the_chat_replaces_the_older(
    tmp_path: Path, pi: Program
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, pi)
        async with connected(bridge, pi.pid) as older:
            async with connected(bridge, pi.pid) as newer:
                assert await older.is_closed()
                await settled()
                await bring(bridge, queue, 1)
                handed = await newer.offer()
                await newer.say(emitted=handed["offer"])
                await queue.wait_for_offer()
            assert states(queue) == [DeliveryState.OFFERED]


async def test_an_extension_that_closes_with_an_offer_out_leaves_it_unsure(
    tmp_path: Path, pi: Program
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, pi)
        async with connected(bridge, pi.pid) as extension:
            await bring(bridge, queue, 1)
            await extension.offer()
            await extension.close()
            await queue.wait_for_offer()
        assert states(queue) == [DeliveryState.AMBIGUOUS]
        assert len(bridge.told) == 1

        async with connected(bridge, pi.pid) as again:
            await bring(bridge, queue, 2)
            handed = await again.offer()
            await again.say(emitted=handed["offer"])
            await queue.wait_for_offer()
        # It is only named, and that is no reason to start a turn.
        assert "may not have reached you" in handed["text"]
        assert handed["text"].count("Ready for review.") == 1


async def test_garbage_disconnects_the_extension(tmp_path: Path, pi: Program) -> None:
    async with open_bridge(tmp_path) as bridge:
        await attached(bridge, pi)
        async with connected(bridge, pi.pid) as extension:
            await extension.say(idle="perhaps")
            assert await extension.is_closed()
            await settled()
            assert bridge.adapters == {}


async def test_a_chat_that_was_left_meanwhile_is_ended(
    tmp_path: Path, pi: Program
) -> None:
    async with open_bridge(tmp_path) as bridge:
        left = await attached(bridge, pi)
        assert identity.still_there("pi", CHAT, pi.key)
        async with connected(bridge, pi.pid, session_id=OTHER):
            await wait_until(
                lambda: left.record.state is AttachmentState.OFFLINE, "the end"
            )


async def test_a_process_with_many_chats_keeps_them_all(
    tmp_path: Path, opencode: Program
) -> None:
    async with open_bridge(tmp_path) as bridge:
        one = await attached(bridge, opencode, "opencode", "ses_1")
        async with (
            connected(bridge, opencode.pid, "opencode", "ses_2") as second,
            connected(bridge, opencode.pid, "opencode", "ses_1") as first,
        ):
            await bring(bridge, one, 1)
            handed = await first.offer()
            await first.say(emitted=handed["offer"])
            await one.wait_for_offer()
            assert one.record.state is AttachmentState.ATTACHED
            assert len(bridge.adapters) == 2
            with trio.move_on_after(0.05):
                await second.offer()
                pytest.fail("a chat that is not attached was handed an offer")


@pytest.mark.parametrize("provider", ["opencode", "claude", "script"])
async def test_only_the_program_itself_may_carry_its_chats(
    tmp_path: Path, pi: Program, provider: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        _, connection = await connection_of(
            pi.pid, f"AW1 route {provider} {CHAT} 0\n".encode()
        )
        with pytest.raises(Refused) as refused:
            await adapters.serve_route(bridge, connection)
        assert refused.value.code == "not_its_host"
        assert bridge.adapters == {}


async def test_a_child_of_the_program_is_not_the_program(
    tmp_path: Path, pi: Program
) -> None:
    async with open_bridge(tmp_path) as bridge:
        _, connection = await connection_of(
            os.getpid(), f"AW1 route pi {CHAT} 0\n".encode()
        )
        with pytest.raises(Refused):
            await adapters.serve_route(bridge, connection)


async def test_a_chat_that_cannot_be_one_is_refused(
    tmp_path: Path, pi: Program
) -> None:
    async with open_bridge(tmp_path) as bridge:
        _, connection = await connection_of(pi.pid, b"AW1 route pi ../x 0\n")
        with pytest.raises(Invalid):
            await adapters.serve_route(bridge, connection)
