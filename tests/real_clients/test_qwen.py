"""A real Qwen Code with the product in it: attached, written to, answering."""

from __future__ import annotations

import pytest

from tests.real_clients.house import House
from tests.real_clients.offers import offers_in, times_remembered, times_seen
from tests.real_clients.rig.qwen import QwenRig
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
