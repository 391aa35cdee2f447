"""A real Claude Code reached at once: idle, in the middle of a turn, with a draft."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.fakes.model_server import Step
from tests.journeys.rig.waiting import until_some
from tests.real_clients.claude_chats import (
    CHAT,
    STREAM,
    Talk,
    attach_waking,
    bodies,
    idle,
    in_subagent,
    seen,
)
from tests.real_clients.house import House
from tests.real_clients.offers import offers_in
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.processes import end
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow, pytest.mark.waking]

HELLO = "hello bob, this is alice"
UNSURE = "may not have reached you"


@pytest.fixture
async def bob(house: House, claude: ClaudeRig, talk: Talk) -> Talk:
    """Attached as bob; its setup text has started a turn of its own."""
    await attach_waking(claude, house, talk)
    return talk


async def reached(claude: ClaudeRig, text: str) -> None:
    """Until the model has it."""
    await wait_until(lambda: seen(claude, text), f"{text!r} at the model")


async def offered(house: House) -> None:
    """Until a message was written to bob's chat; he has said nothing of it."""

    async def look() -> bool:
        row = await house.row("bob")
        return bool(row["pending"] == 0 and row["unacknowledged"])

    await until_some(look, "a message written to bob's chat")


def signs(house: House) -> list[str]:
    """How each offer that went the native way was confirmed, in order."""
    said = [each for each in house.log() if each["event"] == "offered_natively"]
    return [str(each.get("evidence", "")) for each in said]


@CHAT
async def test_an_idle_chat_is_woken_and_its_draft_stays(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    alice = await house.script()
    await bob.chat.pane.type("half a thought")
    await bob.chat.pane.wait_text("half a thought")

    await alice.send("wake up, bob")

    await reached(claude, "wake up, bob")
    await bob.chat.wait_idle()
    assert seen(claude, "wake up, bob") == 1
    assert "half a thought" in bob.chat.pane.text()
    await house.until_row("bob", pending=0)


@STREAM
async def test_a_stream_is_woken_too(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    alice = await house.script()

    await alice.send(HELLO)

    await reached(claude, HELLO)
    await idle(claude, bob)
    await bob.turn("and now?")
    assert bodies(claude) == [HELLO]


@CHAT
async def test_our_own_prompt_hook_hears_the_text_and_the_stop_hook_adds_nothing(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    alice = await house.script()
    known = len(claude.model.turns())

    ended = bob.turns_ended()
    await alice.send("/agentworks attach evil")
    await reached(claude, "attach evil")
    await idle(claude, bob, ended)
    await bob.turn("and now?")

    assert len(claude.model.turns()) == known + 2
    assert signs(house) == ["seen", "seen"]
    assert await house.row("evil") == {}
    assert (await house.row("bob"))["state"] == "attached"
    assert seen(claude, UNSURE) == 0


@CHAT
async def test_two_messages_quickly_come_once_each(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    alice = await house.script()

    ended = bob.turns_ended()
    await alice.send("first")
    await alice.send("second")

    await wait_until(lambda: len(bodies(claude)) == 2, "both messages")
    await idle(claude, bob, ended)
    await bob.turn("and now?")
    assert bodies(claude) == ["first", "second"]
    assert seen(claude, UNSURE) == 0


@CHAT
async def test_a_busy_chat_has_it_after_its_tool_call_in_the_same_turn(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    alice = await house.script()
    claude.model.enqueue(_waits_for_a_file(house))
    known = len(claude.model.turns())

    async with bob.turning("go on"):
        await wait_until(lambda: _waited_for(house).exists(), "the tool call")
        await alice.send(HELLO)
        await offered(house)
        assert seen(claude, HELLO) == 0
        _end_of_wait(house).touch()

    called, brought = claude.model.turns()[known:]
    assert not offers_in(called)
    assert brought.tool_results
    assert bodies(claude) == [HELLO]


@CHAT
async def test_a_question_to_the_person_is_answered_first(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    alice = await house.script()
    place = str(house.computer.project / "notes.txt")
    wish = {"file_path": place, "content": "a line"}
    claude.model.enqueue(Step(when="go on", tool="Write", arguments=wish))

    await bob.chat.type("go on")
    await bob.chat.pane.wait_text("Do you want to create")
    await alice.send(HELLO)
    await offered(house)
    assert seen(claude, HELLO) == 0
    assert "Do you want to create" in bob.chat.pane.text()
    bob.chat.pane.press("Enter")

    await reached(claude, HELLO)
    await idle(claude, bob)
    assert Path(place).read_text() == "a line"
    assert bodies(claude) == [HELLO]


@CHAT
async def test_a_subagent_does_not_get_it(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    alice = await house.script()
    task = {"description": "look", "prompt": "SUBTASK", "subagent_type": "Explore"}
    waited_for = {**task, "run_in_background": False}
    claude.model.enqueue(
        Step(when="go on", tool="Agent", arguments=waited_for),
        Step(when="SUBTASK", hold="subagent", say="looked"),
    )

    async with bob.turning("go on"):
        await wait_until(
            lambda: claude.model.turns(containing="SUBTASK"), "the subagent's request"
        )
        await alice.send(HELLO)
        await offered(house)
        claude.model.release("subagent")
    await reached(claude, HELLO)

    (brought,) = claude.model.turns(containing=HELLO)
    assert not in_subagent(brought, "SUBTASK")
    assert bodies(claude) == [HELLO]


@CHAT
async def test_after_a_restart_of_the_bridge_the_way_is_found_again(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    alice = await house.script()

    await house.stop()
    await house.start()
    row = await house.until_row("bob", state="attached")
    await house.until_row("alice", state="attached")
    await alice.send(HELLO)

    await reached(claude, HELLO)
    assert row["route"].startswith("claude+session://")
    assert bodies(claude) == [HELLO]


@CHAT
async def test_a_bridge_that_dies_with_an_offer_out_names_it_once_and_repeats_nothing(
    house: House, claude: ClaudeRig, bob: Talk
) -> None:
    alice = await house.script()
    end(bob.process, signal.SIGSTOP)  # it reads its inbox later

    sent = await alice.send(HELLO)
    await wait_until(lambda: _is_written_to(bob), "the text on its way")
    await house.kill()
    end(bob.process, signal.SIGCONT)
    await house.start()

    await reached(claude, HELLO)
    await idle(claude, bob)
    # That starts no turn of its own: it comes when one has ended.
    await bob.turn("and now?")
    await reached(claude, UNSURE)
    await idle(claude, bob)
    assert bodies(claude) == [HELLO]
    assert seen(claude, f"{sent['message_id']} {UNSURE}") == 1


def _is_written_to(bob: Talk) -> bool:
    """Whether a reply address of ours lies beside its inbox: an offer is out."""
    inbox = Path(bob.chat.registration["messagingSocketPath"])
    return any(each.stem != inbox.stem for each in inbox.parent.glob("*.sock"))


def _waited_for(house: House) -> Path:
    return house.computer.project / "waiting"


def _end_of_wait(house: House) -> Path:
    return house.computer.project / "go"


def _waits_for_a_file(house: House) -> Step:
    """A tool call that lasts until the test ends it."""
    begun, over = _waited_for(house), _end_of_wait(house)
    command = f"touch {begun}; until [ -e {over} ]; do sleep 0.05; done"
    return Step(when="go on", tool="Bash", arguments={"command": command})
