"""One turn end after the other: what each hook is told."""

from __future__ import annotations

import os
from pathlib import Path

import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.ids import SessionId
from bridge.core.records import DeliveryState
from bridge.driver import hooks, receiving
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.local.connection import Connection
from bridge.local.dialogue import HookDialogue
from bridge.local.peer import Peer
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
        assert hooks.STOP_WAIT_S <= trio.current_time() - begun < 3.9
