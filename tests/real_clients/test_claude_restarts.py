"""The bridge stops, dies or is stopped short below a real Claude Code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.claude_chats import (
    BOTH,
    STREAM,
    Talk,
    attach,
    bodies,
    open_talk,
    seen,
    tool,
)
from tests.real_clients.house import ROOT, House
from tests.real_clients.offers import offers_in
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.probes import PYTHON
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

HELLO = "hello bob, this is alice"
UNSURE = "may not have reached you"


@BOTH
async def test_a_daemon_killed_between_turns_loses_nothing_and_repeats_nothing(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    alice = await house.script()
    await alice.send("before")
    await house.until_row("bob", pending=1)
    await bob.turn("one")
    await alice.send("kept")
    await house.until_row("bob", pending=1)

    await house.kill()
    await bob.turn("two")  # with no bridge a turn ends as ever
    await house.start()
    await house.until_row("bob", state="attached", pending=1)
    await alice.send("after")
    await house.until_row("bob", pending=2)
    _, brought = await bob.turn("three")
    await bob.turn("four")

    assert offers_in(brought)[0].bodies == ("kept", "after")
    assert bodies(claude) == ["before", "kept", "after"]
    assert seen(claude, UNSURE) == 0


@BOTH
async def test_after_stop_and_start_the_same_chat_is_attached_without_a_question(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    alice = await house.script()

    await house.stop()
    await house.start()
    await house.until_row("bob", state="attached", route="hook")
    await house.until_row("alice", state="attached")
    await alice.send(HELLO)
    await house.until_row("bob", pending=1)
    _, brought = await bob.turn("what now?")

    assert offers_in(brought)[0].bodies == (HELLO,)
    assert "attached this chat to AgentWorks" not in brought.new_text


@BOTH
async def test_after_stop_and_start_a_new_process_of_the_session_is_not_attached(
    claude: ClaudeRig, house: House, bob: Talk, kind: str
) -> None:
    alice = await house.script()
    session_id = bob.session_id
    await house.stop()
    await bob.leave()
    again = await open_talk(claude, kind, "--resume", session_id, name="again")

    await house.start()
    await house.until_row("alice", state="attached")
    await alice.send(HELLO)
    await again.turn("what now?")

    assert again.session_id == session_id
    assert (await house.row("bob"))["state"] == "offline"
    assert seen(claude, HELLO) == 0


async def test_a_hook_frozen_after_wait_leaves_its_message_unsure_and_named_once(
    claude: ClaudeRig, house: House
) -> None:
    await house.install("claude")
    shorten_stop(house)
    bob = await open_talk(claude, "stream")
    await attach(house, bob)
    alice = await house.script()
    sent = await alice.send(HELLO)
    await house.until_row("bob", pending=1)
    frozen = freeze_next_hook(house)

    (alone,) = await bob.turn("one")  # the host ends the hook, and then the turn
    assert frozen.exists()
    await house.until_row("bob", pending=0, unacknowledged=1)
    _, named = await bob.turn("two")
    (later,) = await bob.turn("three")

    (offer,) = offers_in(named)
    assert offer.bodies == ()
    assert f"{sent['message_id']} {UNSURE}" in offer.text
    assert seen(claude, UNSURE) == 1
    assert seen(claude, HELLO) == 0
    assert alone.number < named.number < later.number


@BOTH
async def test_a_daemon_killed_during_a_tool_call_is_an_honest_error_and_no_end(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    await house.script()
    await house.until_row("bob", state="attached")
    claude.model.enqueue(
        Step(when="go on", hold="call", tool=tool("read"), arguments={"wait_s": 25}),
        Step(when="outcome is unknown", hold="again", tool=tool("peers")),
    )

    async with bob.turning("go on"):
        await wait_until(
            lambda: claude.model.turns(containing="go on"), "the model's request"
        )
        quiet_s = await house.quiet("bob", more_than_s=1)
        claude.model.release("call")
        await house.quiet("bob", less_than_s=quiet_s)  # the call has come in
        await house.kill()
        (failed,) = await wait_until(
            lambda: claude.model.turns(containing="outcome is unknown"),
            "the model reading it",
        )
        await house.start()
        claude.model.release("again")

    (error,) = failed.tool_results
    assert "went away during this call, so its outcome is unknown" in error
    (answer,) = claude.model.turns()[-1].tool_results
    assert json.loads(answer)["agents"][0]["name"] == "alice"


@STREAM
async def test_with_the_bridge_stopped_a_tool_says_how_to_start_it(
    claude: ClaudeRig, house: House, bob: Talk
) -> None:
    await house.stop()
    claude.model.enqueue(Step(when="who", tool=tool("peers")))

    _, told = await bob.turn("who is there?")

    assert "agentworks up" in told.tool_results[0]


def shorten_stop(house: House) -> None:
    """Let the host's patience with our Stop hook be 2 s, so that the test is short."""
    (hooks,) = (house.state / "plugins").rglob("hooks.json")
    document = json.loads(hooks.read_text())
    document["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 2
    hooks.write_text(json.dumps(document))


def freeze_next_hook(house: House) -> Path:
    """Have the next hook client stop itself where it takes `wait`, as by a signal.

    It is the Python twin with one line more, so that the signal comes exactly
    there. The file that is returned exists once that happened.
    """
    text = (ROOT / "hooks" / "ask.py").read_text()
    mark = house.computer.folder / "frozen"
    taken = "            self.deadline_s = now_s() + answer[0]\n"
    assert text.count(taken) == 1
    freeze = (
        "            try:\n"
        f"                posix.open({str(mark)!r}, posix.O_CREAT | posix.O_EXCL)\n"
        "                posix.kill(posix.getpid(), 19)\n"
        "            except FileExistsError:\n"
        "                pass\n"
    )
    _, _, rest = text.replace(taken, taken + freeze).partition("\n")
    twin = house.ask.with_name("ask.frozen")
    twin.write_text(f"#!{PYTHON} -IS\n{rest}")
    twin.chmod(0o700)
    twin.replace(house.ask)
    return mark
