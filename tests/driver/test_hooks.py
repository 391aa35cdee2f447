"""One turn end after the other: what each hook is told."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.ids import SessionId
from bridge.core.records import DeliveryState
from bridge.driver import cutting_short, hooks, receiving
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.local.connection import Connection
from bridge.local.dialogue import HookDialogue
from bridge.peer import Peer
from bridge.providers import process
from tests.core.examples import BOB
from tests.driver.desk import incoming, open_bridge
from tests.fakes.memory_door import MemoryStream
from tests.real_clients.rig.waiting import wait_until

NOTHING = b"AW1 print 0 stdout 0\n"
WAIT = b"AW1 wait 2 0 stdout 0\n"


async def attached(bridge: Bridge) -> AttachmentQueue:
    """This very process, attached as a script; hooks run as itself."""
    facts = process.facts_of(os.getpid())
    assert facts is not None
    key = process.key_of(facts)
    record = replace(
        BOB,
        provider="script",
        process_key=key,
        session_id=SessionId(key.text()),
        setup_at=1.0,
        guidance_at=1_790_000_000.0,
    )
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    return queue


async def stop_hook(bridge: Bridge, stdin: bytes) -> MemoryStream:
    """A hook that asks at a turn's end; the client's side of it."""
    near, far = trio.testing.memory_stream_pair()
    await near.send_all(b"AW1 hook script stop %d\n%b" % (len(stdin), stdin))
    peer = Peer(uid=os.geteuid(), pid=os.getpid())
    connection = Connection(far, peer, trio.current_time() + 5)
    await connection.receive_first_header()
    bridge.start(hooks.answer_hook, bridge, HookDialogue(connection))
    return near


async def heard(hook: MemoryStream, until: bytes) -> bytes:
    """What came, up to a text."""
    received = b""
    with trio.fail_after(5):
        while until not in received:
            received += bytes(await hook.receive_some())
    return received


async def test_a_turn_that_ends_while_the_one_before_is_saved_is_heard(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1, "The first."), 1000.0)
        one = await stop_hook(bridge, b"one")
        await heard(one, b"The first.")
        await receiving.receive(bridge, queue, incoming(2, "The second."), 1000.0)
        other = await stop_hook(bridge, b"other")
        assert await heard(other, WAIT) == WAIT

        await one.send_all(b"AW1 printed 0\n")
        await heard(other, b"The second.")
        await other.send_all(b"AW1 printed 0\n")
        await trio.testing.wait_all_tasks_blocked(0.05)

        assert len(queue.in_state(DeliveryState.OFFERED)) == 2


async def test_a_second_installation_is_told_nothing_of_the_same_turn_end(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1, "The first."), 1000.0)
        one = await stop_hook(bridge, b"the same")
        await heard(one, b"The first.")
        await receiving.receive(bridge, queue, incoming(2, "The second."), 1000.0)
        twin = await stop_hook(bridge, b"the same")

        assert await heard(twin, NOTHING) == NOTHING
        await one.send_all(b"AW1 printed 0\n")


async def test_a_stopping_bridge_waits_two_seconds_for_the_word_of_a_hook(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge)
        await receiving.receive(bridge, queue, incoming(1, "The first."), 1000.0)
        hook = await stop_hook(bridge, b"one")
        await heard(hook, b"The first.")
        begun = trio.current_time()

        bridge.stopping.set()

        await wait_until(
            lambda: queue.in_state(DeliveryState.AMBIGUOUS), "an unsure message", 5
        )
        assert cutting_short.STOP_WAIT_S <= trio.current_time() - begun < 3.9


# ---- what was printed, and what the host says next -------------------------------


class Codex:
    """A process that is called codex and a hook below it, for the kernel's facts."""

    def __init__(self, pid: int, hook_pid: int) -> None:
        self.pid = pid
        self.hook_pid = hook_pid

    async def stop(
        self, bridge: Bridge, turn: str, *, is_continuation: bool = False
    ) -> MemoryStream:
        """Its Stop hook begins; the client's side of it."""
        said = {
            "session_id": BOB.session_id,
            "hook_event_name": "Stop",
            "turn_id": turn,
            "stop_hook_active": is_continuation,
        }
        stdin = msgspec.json.encode(said)
        near, far = trio.testing.memory_stream_pair()
        await near.send_all(b"AW1 hook codex Stop %d\n%b" % (len(stdin), stdin))
        peer = Peer(uid=os.geteuid(), pid=self.hook_pid)
        connection = Connection(far, peer, trio.current_time() + 5)
        await connection.receive_first_header()
        bridge.start(hooks.answer_hook, bridge, HookDialogue(connection))
        return near

    async def attached(self, bridge: Bridge) -> AttachmentQueue:
        """Its one chat, attached as bob."""
        facts = process.facts_of(self.pid)
        assert facts is not None
        record = replace(
            BOB,
            provider="codex",
            process_key=process.key_of(facts),
            setup_at=1.0,
            guidance_at=1_790_000_000.0,
        )
        await bridge.commit([SaveAttachment(record)])
        queue = bridge.new_queue(record)
        bridge.roster.add(queue)
        return queue


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Codex]:
    program = tmp_path / "codex"
    shutil.copy("/bin/sh", program)
    words = ["codex", "-c", "sleep 1000 & echo $!; wait"]
    with subprocess.Popen(
        words, executable=program, env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        hook_pid = int(started.stdout.readline())
        yield Codex(started.pid, hook_pid)
        os.kill(hook_pid, signal.SIGKILL)
        started.kill()


async def printed(queue: AttachmentQueue, hook: MemoryStream) -> None:
    """The hook says that it printed, and that is saved."""
    await hook.send_all(b"AW1 printed 0\n")
    await queue.wait_for_offer()


NAMED = b"may not have reached you"


async def test_what_was_printed_and_then_contradicted_is_named_once(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await codex.attached(bridge)
        await receiving.receive(bridge, queue, incoming(1, "The first."), 1000.0)
        first = await codex.stop(bridge, "turn-1")
        await heard(first, b"The first.")
        await printed(queue, first)
        assert [row.state for row in queue.deliveries.values()] == ["offered"]

        # The next turn end follows nothing that we printed.
        second = await codex.stop(bridge, "turn-2")
        text = await heard(second, NAMED)
        assert incoming(1).message_id.encode() in text
        assert b"The first." not in text
        signs = {row.delivery: row.message_id for row in queue.unsent_receipts()}
        assert signs["unsure"] == incoming(1).message_id
        await printed(queue, second)

        # Nor does this one: what named it may be lost too, and is not repeated.
        third = await codex.stop(bridge, "turn-3")
        assert await heard(third, NOTHING) == NOTHING
        assert [row.state for row in queue.deliveries.values()] == ["ambiguous"]


async def test_what_the_host_went_on_with_is_not_named(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await codex.attached(bridge)
        await receiving.receive(bridge, queue, incoming(1, "The first."), 1000.0)
        first = await codex.stop(bridge, "turn-1")
        await heard(first, b"The first.")
        await printed(queue, first)

        again = await codex.stop(bridge, "turn-1", is_continuation=True)
        assert await heard(again, NOTHING) == NOTHING
        assert [row.state for row in queue.deliveries.values()] == ["offered"]


async def test_what_a_hook_never_spoke_of_is_named_once(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await codex.attached(bridge)
        await receiving.receive(bridge, queue, incoming(1, "The first."), 1000.0)
        first = await codex.stop(bridge, "turn-1")
        await heard(first, b"The first.")
        await first.aclose()
        await queue.wait_for_offer()

        second = await codex.stop(bridge, "turn-2")
        assert b"The first." not in await heard(second, NAMED)
        await printed(queue, second)
        third = await codex.stop(bridge, "turn-3")
        assert await heard(third, NOTHING) == NOTHING
