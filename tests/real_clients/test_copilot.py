"""A real Copilot CLI with the product in it: attached, written to, answering."""

from __future__ import annotations

import pytest

from tests.real_clients import turn_talks
from tests.real_clients.house import House
from tests.real_clients.rig.copilot import CopilotRig
from tests.real_clients.turn_talks import COPILOT, Talk, attach

pytestmark = [pytest.mark.real_client, pytest.mark.slow]


async def open_talk(copilot: CopilotRig, *options: str) -> Talk:
    """A new chat that asks for nothing."""
    host = await copilot.open_chat(
        "copilot", "--allow-all-tools", "--allow-all-paths", *options
    )
    return Talk(COPILOT, copilot.model, host, copilot.session_id)


@pytest.fixture
async def talk(copilot: CopilotRig, house: House) -> Talk:
    """A chat in a project with our hooks, attached to nothing."""
    await house.install("copilot")
    return await open_talk(copilot)


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
    copilot: CopilotRig, house: House
) -> None:
    await house.install("codex")
    await house.install("copilot")

    await turn_talks.is_attached_by_typing(house, await open_talk(copilot))


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
    copilot: CopilotRig, house: House
) -> None:
    await house.do("attach", "--provider", "copilot", "--mid-turn", "--yes")
    bob = await open_talk(copilot)
    await attach(house, bob)

    await turn_talks.gets_mail_after_a_tool(house, bob)
