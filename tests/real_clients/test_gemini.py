"""A real Gemini CLI with the product in it: attached, written to, answering."""

from __future__ import annotations

import pytest

from tests.fakes.model_server import Step
from tests.real_clients import turn_talks
from tests.real_clients.house import House
from tests.real_clients.offers import times_seen
from tests.real_clients.rig.gemini import GeminiRig
from tests.real_clients.turn_talks import GEMINI, Talk, attach

pytestmark = [pytest.mark.real_client, pytest.mark.slow]


async def open_talk(gemini: GeminiRig, *options: str) -> Talk:
    """A new chat that asks for nothing."""
    host = await gemini.open_chat("gemini", "--yolo", *options)
    return Talk(GEMINI, gemini.model, host, gemini.session_id)


@pytest.fixture
async def talk(gemini: GeminiRig, house: House) -> Talk:
    """A chat in a project with our hooks, attached to nothing."""
    await house.install("gemini")
    return await open_talk(gemini)


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
    gemini: GeminiRig, house: House
) -> None:
    await house.install("codex")
    await house.install("gemini")

    await turn_talks.is_attached_by_typing(house, await open_talk(gemini))


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


async def test_a_cancelled_turn_takes_no_mail_with_it(house: House, bob: Talk) -> None:
    """Gemini asks its hooks then too, and drops what they print."""
    alice = await house.script()
    await bob.hold("think", Step(), "never")
    await alice.send("hello bob, after all that")
    await house.until_row("bob", pending=1)

    bob.host.pane.press("Escape")
    await bob.host.pane.wait_text("Request cancelled")
    bob.model.release("never")
    await bob.turn("go on", requests=2)

    assert bob.bodies == ["hello bob, after all that"]
    assert times_seen(bob.model.turns(), turn_talks.UNSURE) == 0
