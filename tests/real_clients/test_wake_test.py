"""The person's wake test with a real Claude Code: how far a message comes, by when."""

from __future__ import annotations

import json
import re

import pytest
import trio

from tests.fakes.model_server import ModelRequest, Step
from tests.real_clients.claude_chats import CHAT, Talk, attach_waking, tool
from tests.real_clients.house import House
from tests.real_clients.offers import offers_in
from tests.real_clients.rig.claude import ClaudeRig

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

MINE = "AgentWorks' wake test"


def acknowledge(request: ModelRequest) -> Step | None:
    """The agent does what the wake test asks for, and nothing else."""
    for offer in offers_in(request):
        if MINE in offer.text:
            said = {"message_id": offer.message_ids[0], "delivery": "processed"}
            return Step(tool=tool("ack"), arguments=said)
    return None


@CHAT
@pytest.mark.waking
async def test_an_idle_chat_comes_through_every_step(
    house: House, claude: ClaudeRig, talk: Talk
) -> None:
    await attach_waking(claude, house, talk)
    claude.model.enqueue(acknowledge)

    said = await house.do("agents", "--test-wake", "bob", "--yes")

    steps = said.splitlines()
    assert steps[-1] == "bob can be reached."
    assert "at once, by the chat's own inbox" in steps[2]
    assert "processed" in steps[4]
    times = [float(passed) for passed in re.findall(r"(\d+\.\d\d) s\b", said)]
    assert len(times) == 5
    assert times == sorted(times)
    await house.until_row("bob", pending=0, unacknowledged=0)


@CHAT
async def test_a_chat_that_nothing_wakes_has_it_with_its_next_turn(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    claude.model.enqueue(Step(when="good day", say="hello"), acknowledge)
    said: list[str] = []

    async def try_it() -> None:
        said.append(await house.do("agents", "--test-wake", "bob", "--yes", "--json"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(try_it)
        await house.until_row("bob", pending=1)
        await bob.turn("good day")

    facts = json.loads(said[0])
    assert facts["is_reached"] is True
    assert [step["note"] for step in facts["steps"]][2] == "when a turn ends"


@CHAT
async def test_an_agent_may_not_test_a_wake(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    command = "agentworks agents --test-wake bob --yes"
    claude.model.enqueue(
        Step(when="run it", tool="Bash", arguments={"command": command})
    )

    _, result, *_ = await bob.turn("run it")

    assert "may not use 'test_wake'" in "\n".join(result.tool_results)
