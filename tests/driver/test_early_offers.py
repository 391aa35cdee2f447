"""Mail before the turn's end: only where it was wished, and once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.records import DeliveryState
from bridge.driver import hooks, receiving
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.local.connection import Connection
from bridge.local.dialogue import HookDialogue
from bridge.peer import Peer
from tests.core.examples import BOB
from tests.driver.desk import incoming, open_bridge
from tests.driver.test_hooks import NOTHING, Codex, codex, heard, printed
from tests.fakes.memory_door import MemoryStream

__all__ = ["codex"]

PROMPT = {"hook_event_name": "UserPromptSubmit", "prompt": "what now?"}
TOOL = {"hook_event_name": "PostToolUse", "tool_name": "shell", "tool_response": "ok"}
STOP = {"hook_event_name": "Stop", "stop_hook_active": False}
BODY = b"Ready for review."


async def say(
    bridge: Bridge, codex: Codex, said: Mapping[str, object], **more: object
) -> MemoryStream:
    """A hook of this chat begins; the client's side of it."""
    stdin = msgspec.json.encode(
        {"session_id": BOB.session_id, "turn_id": "turn-1", **said, **more}
    )
    near, far = trio.testing.memory_stream_pair()
    word = said["hook_event_name"]
    header = f"AW1 hook codex {word} {len(stdin)}\n".encode()
    await near.send_all(header + stdin)
    peer = Peer(uid=os.geteuid(), pid=codex.hook_pid)
    connection = Connection(far, peer, trio.current_time() + 5)
    await connection.receive_first_header()
    bridge.start(hooks.answer_hook, bridge, HookDialogue(connection))
    return near


async def attached(bridge: Bridge, codex: Codex, *wants: str) -> AttachmentQueue:
    """Its chat with these wishes, and a message that waits."""
    queue = await codex.attached(bridge)
    async with queue.turn:
        await queue.commit([SaveAttachment(replace(queue.record, wants=wants))])
    await receiving.receive(bridge, queue, incoming(1), 1000.0)
    return queue


@pytest.mark.parametrize(("said", "wish"), [(PROMPT, "at_prompt"), (TOOL, "mid_turn")])
async def test_what_was_wished_comes_as_context_of_its_own(
    tmp_path: Path, codex: Codex, said: Mapping[str, object], wish: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, codex, wish)

        hook = await say(bridge, codex, said)
        text = await heard(hook, BODY)
        await printed(queue, hook)

        assert b"additionalContext" in text
        assert str(said["hook_event_name"]).encode() in text
        assert len(queue.in_state(DeliveryState.OFFERED)) == 1


@pytest.mark.parametrize(("said", "wish"), [(PROMPT, "mid_turn"), (TOOL, "at_prompt")])
async def test_what_was_not_wished_waits_for_the_turns_end(
    tmp_path: Path, codex: Codex, said: Mapping[str, object], wish: str
) -> None:
    async with open_bridge(tmp_path) as bridge:
        await attached(bridge, codex, wish)

        assert await heard(await say(bridge, codex, said), NOTHING) == NOTHING
        assert BODY in await heard(await say(bridge, codex, STOP), BODY)


@pytest.mark.parametrize(
    ("said", "more"),
    [
        (PROMPT, {"agent_id": "agent-1"}),
        (PROMPT, {"prompt": " /compact"}),
        (PROMPT, {"prompt": "!ls"}),
        (TOOL, {"agent_id": "agent-1"}),
    ],
)
async def test_neither_a_subagent_nor_a_command_takes_mail(
    tmp_path: Path, codex: Codex, said: Mapping[str, object], more: Mapping[str, object]
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, codex, "at_prompt", "mid_turn")

        assert await heard(await say(bridge, codex, said, **more), NOTHING) == NOTHING
        assert len(queue.in_state(DeliveryState.PENDING)) == 1


async def test_a_turn_end_says_nothing_of_what_came_earlier_in_it(
    tmp_path: Path, codex: Codex
) -> None:
    """The turn would have gone on without it just as well."""
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, codex, "at_prompt")
        hook = await say(bridge, codex, PROMPT)
        await heard(hook, BODY)
        await printed(queue, hook)

        assert await heard(await say(bridge, codex, STOP), NOTHING) == NOTHING
        assert len(queue.in_state(DeliveryState.OFFERED)) == 1
        assert queue.guard.continuations == 0


async def test_one_offer_is_out_at_a_time(tmp_path: Path, codex: Codex) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, codex, "at_prompt", "mid_turn")
        first = await say(bridge, codex, PROMPT)
        await heard(first, BODY)

        assert await heard(await say(bridge, codex, TOOL), NOTHING) == NOTHING
        await printed(queue, first)
        assert await heard(await say(bridge, codex, TOOL, n=2), NOTHING) == NOTHING


async def test_a_hook_that_never_spoke_of_it_leaves_it_unsure(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await attached(bridge, codex, "mid_turn")
        hook = await say(bridge, codex, TOOL)
        await heard(hook, BODY)
        await hook.aclose()
        await queue.wait_for_offer()

        assert len(queue.in_state(DeliveryState.AMBIGUOUS)) == 1
