"""A real Qwen Code with the product in it: attached, written to, answering."""

from __future__ import annotations

import pytest

from tests.fakes.model_server import Step
from tests.real_clients import turn_talks
from tests.real_clients.house import House
from tests.real_clients.offers import offers_in, times_seen
from tests.real_clients.rig.qwen import QwenRig
from tests.real_clients.rig.waiting import wait_until
from tests.real_clients.turn_talks import QWEN, Talk, attach

pytestmark = [pytest.mark.real_client, pytest.mark.slow]


async def open_talk(qwen: QwenRig, *options: str) -> Talk:
    """A new chat that asks for nothing."""
    host = await qwen.open_chat("qwen", "--yolo", *options)
    return Talk(QWEN, qwen.model, host, qwen.session_id)


@pytest.fixture
async def talk(qwen: QwenRig, house: House) -> Talk:
    """A chat in a project with our hooks, attached to nothing."""
    await house.install("qwen")
    return await open_talk(qwen)


@pytest.fixture
async def bob(house: House, talk: Talk) -> Talk:
    """The same, attached as bob, its setup text behind it."""
    await attach(house, talk)
    return talk


async def test_attach_typed_in_a_chat_attaches_and_reaches_no_model(
    house: House, talk: Talk
) -> None:
    await turn_talks.is_attached_by_typing(house, talk)


async def test_codexs_skill_of_the_same_name_changes_nothing(
    qwen: QwenRig, house: House
) -> None:
    await house.install("codex")
    await house.install("qwen")

    await turn_talks.is_attached_by_typing(house, await open_talk(qwen))


async def test_a_message_reaches_the_model_once_at_turn_end_in_our_fences(
    house: House, bob: Talk
) -> None:
    await turn_talks.gets_a_message_once(house, bob)


async def test_it_answers_with_our_tool_and_in_its_shell(
    house: House, bob: Talk
) -> None:
    await turn_talks.answers(house, bob)


async def test_mail_of_an_idle_chat_rides_with_a_prompt_where_that_was_wished(
    house: House, bob: Talk
) -> None:
    await turn_talks.gets_mail_with_a_prompt(house, bob)


async def test_a_chat_that_is_left_is_offline(house: House, bob: Talk) -> None:
    await turn_talks.goes_offline(house, bob)


async def test_mail_comes_after_a_tool_call_where_that_was_wished(
    qwen: QwenRig, house: House
) -> None:
    await house.do("attach", "--provider", "qwen", "--mid-turn", "--yes")
    bob = await open_talk(qwen)
    await attach(house, bob)

    await turn_talks.gets_mail_after_a_tool(house, bob)


# ---- woken through its input file ---------------------------------------------------


@pytest.fixture
async def woken(qwen: QwenRig, house: House) -> Talk:
    """A Qwen that was started with an input file, attached as bob."""
    await house.install("qwen")
    prompts = qwen.computer.home / "prompts"
    prompts.touch(0o600)
    talk = await open_talk(qwen, "--input-file", str(prompts))
    await talk.command("/agentworks attach bob", "Attached as bob")
    await wait_until(talk.model.turns, "the setup text at the model")
    await talk.settle()
    await house.until_row("bob", state="attached", pending=0)
    return talk


@pytest.mark.waking
async def test_an_idle_chat_is_woken_by_a_message_and_its_draft_kept(
    house: House, woken: Talk
) -> None:
    secret = house.computer.project / "secret.txt"
    secret.write_text("nobody asked for this file")
    alice = await house.script()
    pane = woken.host.pane
    pane.write("my half-typed draft")
    await pane.wait_text("my half-typed draft")

    await alice.send("hello bob, see @secret.txt")
    await wait_until(lambda: len(woken.model.turns()) == 2, "the message at the model")
    await woken.settle()
    row = await house.until_row("bob", pending=0)

    _, brought = woken.model.turns()
    (offer,) = offers_in(brought)
    assert offer.bodies == ("hello bob, see \\@secret.txt",)
    assert "nobody asked for this file" not in str(brought.body)
    assert "my half-typed draft" in pane.text()
    assert row["route"].startswith("qwen+input:///")


@pytest.mark.waking
async def test_a_message_to_a_busy_chat_comes_once_after_its_turn(
    house: House, woken: Talk
) -> None:
    alice = await house.script()
    await woken.hold("think", Step(), "busy")

    await alice.send("hello bob, when you have time")
    await house.until_row("bob", pending=0)
    woken.model.release("busy")
    await wait_until(lambda: len(woken.model.turns()) == 3, "the message at the model")
    await woken.settle()
    await woken.turn("and now")

    assert woken.bodies == ["hello bob, when you have time"]
    assert times_seen(woken.model.turns(), "may not have reached you") == 0
