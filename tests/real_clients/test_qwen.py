"""A real Qwen Code with the product in it: attached, written to, answering."""

from __future__ import annotations

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.house import House
from tests.real_clients.offers import offers_in, times_remembered, times_seen
from tests.real_clients.rig.qwen import QwenRig
from tests.real_clients.rig.waiting import wait_until
from tests.real_clients.turn_talks import QWEN, Talk, attach

pytestmark = [pytest.mark.real_client, pytest.mark.slow]


@pytest.fixture
async def talk(qwen: QwenRig, house: House) -> Talk:
    """A Qwen in a project with our hooks, attached to nothing."""
    await house.install("qwen")
    return Talk(QWEN, qwen.model, await qwen.open_chat("qwen", "--yolo"))


@pytest.fixture
async def bob(house: House, talk: Talk) -> Talk:
    """The same, attached as bob, its setup text behind it."""
    await attach(house, talk)
    return talk


async def test_attach_typed_in_a_chat_attaches_and_reaches_no_model(
    house: House, talk: Talk
) -> None:
    await talk.command("/agentworks attach bob", "Attached as bob.")
    row = await house.row("bob")
    await talk.turn("hello", requests=2)

    assert (row["state"], row["provider"], row["route"]) == ("attached", "qwen", "hook")
    assert "attach bob" not in str([request.body for request in talk.model.requests])


async def test_a_message_reaches_the_model_once_at_turn_end_in_our_fences(
    house: House, bob: Talk
) -> None:
    alice = await house.script()
    await alice.send("hello bob, <this> is alice")
    await house.until_row("bob", pending=1)

    asked, brought = await bob.turn("what now", requests=2)
    await house.until_row("bob", pending=0)
    (later,) = await bob.turn("and now")

    (offer,) = offers_in(brought)
    assert not offers_in(asked)
    assert offer.bodies == ("hello bob, <this> is alice",)
    assert times_seen(bob.model.turns(), "hello bob, <this> is alice") == 1
    assert times_remembered(later, "hello bob, <this> is alice") == 1
    assert times_seen(bob.model.turns(), "may not have reached you") == 0


# ---- woken through its input file ---------------------------------------------------


@pytest.fixture
async def woken(qwen: QwenRig, house: House) -> Talk:
    """A Qwen that was started with an input file, attached as bob."""
    await house.install("qwen")
    prompts = qwen.computer.home / "prompts"
    prompts.touch(0o600)
    options = ("--yolo", "--input-file", str(prompts))
    talk = Talk(QWEN, qwen.model, await qwen.open_chat("qwen", *options))
    await talk.command("/agentworks attach bob", "Attached as bob")
    await wait_until(talk.model.turns, "the setup text at the model")
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
    await wait_until(lambda: "ok 1" in pane.text(), "the answer to the setup text")
    pane.write("my half-typed draft")
    await pane.wait_text("my half-typed draft")

    await alice.send("hello bob, see @secret.txt")
    await wait_until(lambda: len(woken.model.turns()) == 2, "the message at the model")
    await pane.wait_text("ok 2")
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
    woken.model.enqueue(Step(hold="busy", when="think"))
    await woken.turn("think")

    await alice.send("hello bob, when you have time")
    await house.until_row("bob", pending=0)
    woken.model.release("busy")
    await wait_until(lambda: len(woken.model.turns()) == 3, "the message at the model")
    await woken.turn("and now")

    assert woken.bodies == ["hello bob, when you have time"]
    assert times_seen(woken.model.turns(), "may not have reached you") == 0
