"""A real Codex reached at once: idle, in its turn, and where it cannot be.

Its own app-server, the daemon that all terminals share, its queue, and the chats
that have no way but their hooks.
"""

from __future__ import annotations

import json
import signal

import pytest

from bridge.core.ids import SessionId
from bridge.errors import Refused
from bridge.routes.codex_app_server import CodexAppServer
from tests.fakes.model_server import ModelRequest, Step
from tests.real_clients.codex_chats import (
    ATTACH,
    Talk,
    install,
    open_talk,
    resume_talk,
)
from tests.real_clients.house import House, Script
from tests.real_clients.offers import times_remembered, times_seen
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.processes import end
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow, pytest.mark.waking]

# A hook of the person's own that lets nothing of ours begin a turn.
_BLOCKS_OURS = """\
#!/bin/sh
if grep -q '"prompt":"AgentWorks \\['; then
    printf '{"decision":"block","reason":"not now"}'
fi
"""


@pytest.fixture
async def carol(codex: CodexRig, house: House) -> Talk:
    """A chat of the shared daemon, attached; its setup text started a turn."""
    await install(house)
    talk = await open_talk(codex, "carol", daemon=True, review=True)
    await attach_waking(house, talk, "carol")
    return talk


async def test_an_idle_chat_of_the_daemon_is_woken_and_its_draft_stays(
    house: House, codex: CodexRig, carol: Talk
) -> None:
    dave = await open_talk(codex, "dave", daemon=True)
    await dave.turn("good morning")
    before = codex.settings()
    alice = await house.script()
    await carol.host.pane.type("half a thought")

    brought = await wake(alice, carol, "wake up, carol")

    assert (await house.row("carol"))["route"] == f"unix://{codex.daemon_socket}"
    assert "wake up, carol" in brought.arrived
    assert times_remembered(carol.requests[-1], "wake up, carol") == 1
    assert times_seen(dave.requests, "wake up, carol") == 0
    assert "half a thought" in carol.host.pane.text()
    assert codex.settings() == before


async def test_a_message_joins_the_turn_that_runs(house: House, carol: Talk) -> None:
    alice = await house.script()
    known = len(carol.requests)
    carol.codex.model.enqueue(Step(say="thinking", hold="gate"))
    async with carol.turning("think hard"):
        await wait_until(lambda: len(carol.requests) > known, "the held request")
        await alice.send("in the middle", to="carol")
        await house.until_row("carol", unacknowledged=1)
        carol.codex.model.release("gate")

    asked, brought = carol.requests[known:]
    assert "think hard" in asked.arrived
    assert brought.arrived.count("in the middle") == 1
    assert times_remembered(carol.requests[-1], "in the middle") == 1


async def test_what_a_hook_of_the_persons_blocks_comes_once_with_the_next_turn(
    house: House, codex: CodexRig
) -> None:
    """Codex keeps the untrusted part of a prompt that it did not begin."""
    blocks = codex.computer.folder / "blocks"
    blocks.write_text(_BLOCKS_OURS)
    blocks.chmod(0o700)
    hook = {"type": "command", "command": str(blocks), "timeout": 5}
    hooks = {"UserPromptSubmit": [{"hooks": [hook]}]}
    (codex.codex_home / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    await install(house)
    carol = await open_talk(codex, "carol", daemon=True, review=True)
    await carol.command(ATTACH.format(name="carol"), "Attached as carol")
    await carol.host.pane.wait_text("not now")
    alice = await house.script()
    await alice.send("whenever you like", to="carol")
    screen = carol.host.pane.text
    await wait_until(lambda: screen().count("└ not now") == 2, "two blocked prompts")
    await wait_until(lambda: carol.is_idle, "the end of all turns")
    assert carol.requests == []

    await carol.turn("good morning")
    await carol.turn("what now?")

    assert times_seen(carol.requests, "whenever you like") == 1
    assert times_remembered(carol.requests[-1], "whenever you like") == 1


@pytest.mark.parametrize("size_bytes", [9_000, 40_000])
async def test_a_long_message_arrives_whole_and_once(
    house: House, carol: Talk, size_bytes: int
) -> None:
    """Codex cuts each piece of context over 4,000 bytes; it gets several."""
    alice = await house.script()
    line = "漢字かな交じり文をまるごと送ります。 <b> & \U0001f600\n"
    text = (line * (size_bytes // len(line.encode()) + 1)).strip()
    assert len(text.encode()) > size_bytes - 100

    brought = await wake(alice, carol, text)

    assert "".join(brought.tool_results).count(text) == 1
    assert times_remembered(carol.requests[-1], "end of message 1") == 1


async def test_a_chat_of_its_own_app_server_is_woken_and_mail_outlives_the_server(
    house: House, codex: CodexRig
) -> None:
    await install(house)
    server, path = await codex.serve("own")
    carol = await open_talk(
        codex, "carol", "--remote", f"unix://{path}", daemon=True, review=True
    )
    await attach_waking(house, carol, "carol")
    alice = await house.script()

    await wake(alice, carol, "wake up, carol")
    assert (await house.row("carol"))["route"] == f"unix://{path}"
    end(server, signal.SIGKILL)
    await house.until_row("carol", state="offline")
    await alice.send("are you still there?", to="carol")

    again = await resume_talk(codex, "again", carol.thread_id)
    await again.command(ATTACH.format(name="carol"), "Attached again as carol")
    await again.turn("what now?")
    assert times_seen(again.requests, "are you still there?") == 1
    assert times_seen(again.requests, "wake up, carol") == 1


async def test_a_chat_without_a_server_has_its_hooks_alone(
    house: House, codex: CodexRig
) -> None:
    await install(house)
    carol = await open_talk(codex, "carol")
    await carol.command(ATTACH.format(name="carol"), "Messages come through its hooks")
    alice = await house.script()
    await carol.turn("good morning")

    await alice.send("no hurry", to="carol")
    row = await house.until_row("carol", pending=1)
    assert (row["route"], row["why"]) == ("hook", "no turn has ended")
    assert times_seen(carol.requests, "no hurry") == 0

    await carol.turn("what now?")
    assert times_seen(carol.requests, "no hurry") == 1


async def test_the_queue_of_a_named_server_brings_it_to_a_chat_without_one(
    house: House, codex: CodexRig
) -> None:
    await install(house)
    _, path = await codex.serve("side")
    carol = await open_talk(codex, "carol")
    await carol.turn("good morning")
    attach = f"{ATTACH.format(name='carol')} --native-remote unix://{path}"
    await carol.host.type(attach)
    await until_idle_after(carol, "for carol (codex), attachment ")
    alice = await house.script()
    sent = await alice.send("from the queue", to="carol")

    await house.receipt(alice, sent["message_id"], "admitted")
    await until_idle_after(carol, "from the queue")
    assert carol.bodies == ["from the queue"]
    assert times_seen(carol.requests, "from the queue") == 1


async def test_a_thread_of_codex_exec_is_refused(codex: CodexRig) -> None:
    run = await codex.run("hello")
    _, path = await codex.serve("side")
    way = CodexAppServer(
        SessionId(run.thread_id), str(path), lambda _: True, may_queue=True
    )

    with pytest.raises(Refused, match="belongs to codex exec"):
        await way.check()


async def attach_waking(house: House, talk: Talk, name: str) -> None:
    """Attach by typing; its setup text starts a turn by itself."""
    await talk.command(ATTACH.format(name=name), f"Attached as {name}")
    await until_idle_after(talk, f"for {name} (codex), attachment ")
    await house.until_row(name, state="attached", pending=0)


async def wake(alice: Script, talk: Talk, text: str) -> ModelRequest:
    """Send it to a chat that is idle; the one request that brought it.

    Returns at the end of the turn that it started.
    """
    start = text[:20]
    await alice.send(text, to=talk.host.name)
    await until_idle_after(talk, start)
    (brought,) = [each for each in talk.requests if start in each.arrived]
    return brought


async def until_idle_after(talk: Talk, text: str) -> None:
    """Wait until a text was at the model and the turn that brought it is over."""
    await wait_until(lambda: times_seen(talk.requests, text), f"{text!r} at the model")
    await wait_until(lambda: talk.is_idle, "the end of that turn")
