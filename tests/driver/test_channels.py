"""A channel is its program's, and ends with the child that carries it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.core.caller import ChildCaller, Nobody, ProcessFacts
from bridge.core.effects import SaveAttachment
from bridge.driver import channels, natives
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.local.wire import Header
from bridge.providers import process
from bridge.routes.claude_channel import About, ClaudeChannel
from tests.core.examples import BOB
from tests.driver.desk import open_bridge
from tests.driver.test_natives import settled
from tests.real_clients.rig.waiting import wait_until

TAKES_IT = ("claude", "--channels", "plugin:agentworks@agentworks")
PROCESS = ProcessFacts(4242, 1, 7, "claude", 0, "/usr/bin/claude", TAKES_IT)
CALLER = ChildCaller("claude", PROCESS)
ASKED = Header("mcp", ("claude",), 0, ("channel",))


class Port:
    """Where nothing is ever pushed."""

    is_open = True

    async def notify(self, method: str, params: Mapping[str, object]) -> None:
        raise AssertionError


def about(message_id: str) -> About | None:
    return None


async def attached(bridge: Bridge) -> AttachmentQueue:
    """A chat of that program whose mail comes through the channel."""
    key = process.key_of(PROCESS)
    record = replace(
        BOB, process_key=key, setup_at=1.0, guidance_at=bridge.clock.wall()
    )
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    channel = bridge.channels[key]
    way = ClaudeChannel("claude+channel://4242", channel, lambda: True, about)
    await natives.use(bridge, queue, way)
    return queue


def test_a_child_is_one_when_it_and_its_host_were_asked_to() -> None:
    assert channels.is_asked_for(ASKED, CALLER)


@pytest.mark.parametrize(
    ("header", "caller"),
    [
        (Header("mcp", ("claude",)), CALLER),
        (ASKED, Nobody("not_its_host", "It is not.")),
        (ASKED, ChildCaller("codex", PROCESS)),
        (ASKED, ChildCaller("claude", replace(PROCESS, arguments=("claude",)))),
        (ASKED, ChildCaller("claude", replace(PROCESS, arguments=()))),
    ],
)
def test_any_other_child_is_none(header: Header, caller: ChildCaller | Nobody) -> None:
    assert not channels.is_asked_for(header, caller)


async def test_its_end_leaves_the_chat_to_its_other_ways(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        with channels.opening(bridge, CALLER) as opened:
            opened(Port())
            queue = await attached(bridge)
            assert queue.record.native_route == "claude+channel://4242"
        await wait_until(lambda: not queue.record.native_route, "the way's end")

        assert bridge.channels == {}
        assert queue.native.way is None


async def test_the_end_of_an_older_child_leaves_the_newer_one(tmp_path: Path) -> None:
    """A host that starts its children anew may end the old ones later."""
    async with open_bridge(tmp_path) as bridge:
        with channels.opening(bridge, CALLER) as newer:
            with channels.opening(bridge, CALLER) as older:
                older(Port())
                newer(Port())
                queue = await attached(bridge)
            await settled()

            assert process.key_of(PROCESS) in bridge.channels
            assert queue.native.way is not None


async def test_a_way_through_an_older_child_ends_with_it(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        with channels.opening(bridge, CALLER) as newer:
            with channels.opening(bridge, CALLER) as older:
                older(Port())
                queue = await attached(bridge)
                newer(Port())
            await wait_until(lambda: not queue.record.native_route, "the way's end")

            assert queue.native.way is None  # the process that it is of is not here
            assert process.key_of(PROCESS) in bridge.channels


async def test_a_child_whose_host_never_finished_the_handshake_opens_nothing(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        with channels.opening(bridge, CALLER):
            pass

        assert bridge.channels == {}
