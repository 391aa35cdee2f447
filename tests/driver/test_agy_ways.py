"""agy's access comes from its own hook's environment, and goes with its process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.ids import SessionId
from bridge.core.records import DeliveryState
from bridge.driver import agy_ways, attaching, finding, hooks, receiving
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.local.connection import Connection
from bridge.local.dialogue import HookDialogue
from bridge.peer import Peer
from bridge.providers import process
from tests.core.examples import BOB
from tests.driver.desk import incoming, open_bridge
from tests.driver.test_hooks import heard
from tests.fakes.agy_service import TOKEN, agy_service
from tests.providers.captured import captured
from tests.real_clients.rig.waiting import wait_until

CONVERSATION = SessionId(captured("agy/stop")["conversationId"])
NOTHING = b"AW1 print 0 stdout 2\n{}"


class Agy:
    """A process that is called agy and a hook below it, for the kernel's facts."""

    def __init__(self, started: subprocess.Popen[bytes]) -> None:
        assert started.stdout is not None
        self.process = started
        self.hook_pid = int(started.stdout.readline())

    async def hook(self, bridge: Bridge, word: str = "PreInvocation") -> None:
        """Its hook begins, is told nothing and says so."""
        name = {"PreInvocation": "pre_invocation", "Stop": "stop"}[word]
        stdin = msgspec.json.encode(captured(f"agy/{name}"))
        near, far = trio.testing.memory_stream_pair()
        header = f"AW1 hook agy {word} {len(stdin)}\n".encode()
        await near.send_all(header + stdin)
        peer = Peer(uid=os.geteuid(), pid=self.hook_pid)
        connection = Connection(far, peer, trio.current_time() + 5)
        await connection.receive_first_header()
        bridge.start(hooks.answer_hook, bridge, HookDialogue(connection))
        assert await heard(near, b"{}") == NOTHING
        await near.send_all(b"AW1 printed 0\n")

    async def attached(self, bridge: Bridge) -> AttachmentQueue:
        """Its conversation, attached as bob."""
        facts = process.facts_of(self.process.pid)
        assert facts is not None
        record = replace(
            BOB,
            provider="agy",
            session_id=CONVERSATION,
            process_key=process.key_of(facts),
            setup_at=1.0,
            guidance_at=1_790_000_000.0,
        )
        await bridge.commit([SaveAttachment(record)])
        queue = bridge.new_queue(record)
        bridge.roster.add(queue)
        return queue


Start = Callable[[Mapping[str, str]], Agy]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts an agy process whose hook has these variables."""
    started: list[Agy] = []
    program = tmp_path / "agy"
    shutil.copy(Path("/bin/sh").resolve(), program)

    def begin(variables: Mapping[str, str]) -> Agy:
        words = ["agy", "-c", "sleep 1000 & echo $!; wait"]
        environment = {"PATH": "/usr/bin:/bin", **variables}
        child = subprocess.Popen(
            words, executable=program, env=environment, stdout=subprocess.PIPE
        )
        started.append(Agy(child))
        return started[-1]

    yield begin
    for each in started:
        os.kill(each.hook_pid, signal.SIGKILL)
        each.process.kill()
        each.process.communicate()


def variables(port: int, **more: str) -> dict[str, str]:
    return {
        "ANTIGRAVITY_CONVERSATION_ID": CONVERSATION,
        "ANTIGRAVITY_LS_ADDRESS": f"localhost:{port}",
        "ANTIGRAVITY_CSRF_TOKEN": TOKEN,
        **more,
    }


async def test_mail_reaches_an_idle_conversation_after_its_hook_gave_access(
    tmp_path: Path, start: Start
) -> None:
    async with agy_service() as service, open_bridge(tmp_path) as bridge:
        agy = start(variables(service.port))
        queue = await agy.attached(bridge)
        assert await finding.find(bridge, queue) is None

        await agy.hook(bridge)
        await wait_until(lambda: queue.native.way, "the way")
        await receiving.receive(bridge, queue, incoming(1, "The first."), 1000.0)

        await wait_until(lambda: service.texts, "the call")
        assert service.texts[0].count("The first.") == 1
        await queue.wait_for_offer()
        assert len(queue.in_state(DeliveryState.OFFERED)) == 1
        assert TOKEN not in queue.record.native_route
        queue.native.stir()


async def test_an_access_goes_when_its_process_ends(
    tmp_path: Path, start: Start
) -> None:
    async with open_bridge(tmp_path) as bridge:
        agy = start(variables(4711))
        queue = await agy.attached(bridge)
        agy_ways.take_access(bridge, queue, agy.hook_pid)
        assert len(bridge.accesses) == 1
        way = await finding.find(bridge, queue)
        assert way is not None

        attaching.watch_process(bridge, queue.record.process_key)
        agy.process.kill()
        agy.process.wait()

        await wait_until(lambda: not bridge.accesses, "the secret's end")
        assert not await way.is_open()


@pytest.mark.parametrize(
    "changes",
    [
        {"ANTIGRAVITY_CONVERSATION_ID": "another"},
        {"ANTIGRAVITY_CONVERSATION_ID": ""},
        {"ANTIGRAVITY_LS_ADDRESS": "example.com:80"},
        {"ANTIGRAVITY_CSRF_TOKEN": ""},
    ],
)
async def test_a_hook_that_gives_no_whole_access_opens_nothing(
    tmp_path: Path, start: Start, changes: dict[str, str]
) -> None:
    async with open_bridge(tmp_path) as bridge:
        agy = start(variables(4711, **changes))
        queue = await agy.attached(bridge)
        agy_ways.take_access(bridge, queue, agy.hook_pid)

        assert bridge.accesses == {}
        assert await finding.find(bridge, queue) is None


async def test_no_secret_is_taken_for_a_chat_of_another_program(
    tmp_path: Path, start: Start
) -> None:
    async with open_bridge(tmp_path) as bridge:
        agy = start(variables(4711))
        queue = await agy.attached(bridge)
        other = bridge.new_queue(replace(queue.record, provider="muse"))
        agy_ways.take_access(bridge, other, agy.hook_pid)

        assert bridge.accesses == {}
