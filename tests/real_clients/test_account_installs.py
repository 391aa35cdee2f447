"""What attach --global writes, taken by real programs in a project without set-up."""

from __future__ import annotations

import pytest

from tests.real_clients import extension_chats, turn_talks
from tests.real_clients.claude_chats import Talk
from tests.real_clients.house import House
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.copilot import CopilotRig
from tests.real_clients.rig.gemini import GeminiRig
from tests.real_clients.rig.opencode import OpencodeRig
from tests.real_clients.rig.pi import PiRig
from tests.real_clients.rig.qwen import QwenRig
from tests.real_clients.turn_talks import COPILOT, GEMINI, QWEN

pytestmark = [pytest.mark.real_client, pytest.mark.slow]


async def install(house: House, provider: str) -> None:
    """For all projects; the one at hand stays as it is."""
    before = set(house.computer.project.iterdir())
    await house.do("attach", "--provider", provider, "--global", "--yes")
    assert set(house.computer.project.iterdir()) == before


async def test_claude_sees_the_plugin_in_a_project_without_set_up(
    claude: ClaudeRig, house: House
) -> None:
    await install(house, "claude")
    talk = Talk(claude, await claude.open_stream())

    await talk.command("/agentworks attach bob", "Attached as bob")

    assert claude.model.turns() == []
    await house.until_row("bob", provider="claude", state="attached", route="hook")
    _, setup = await talk.turn("hello")
    assert "attached this chat to AgentWorks as bob" in setup.new_text


async def test_codex_runs_the_hooks_and_knows_the_skill_of_the_account(
    codex: CodexRig, house: House
) -> None:
    await install(house, "codex")

    await codex.run(" /agentworks attach carol")
    await house.until_row("carol", provider="codex", state="offline")
    assert codex.model.requests == []
    await codex.run("hello")
    (request,) = codex.model.turns()
    assert "For the person only, never for you to start" in str(request.body)


async def test_copilot_runs_hooks_and_tools_of_the_account(
    copilot: CopilotRig, house: House
) -> None:
    await install(house, "copilot")
    host = await copilot.open_chat("copilot", "--allow-all-tools", "--allow-all-paths")
    talk = turn_talks.Talk(COPILOT, copilot.model, host, copilot.session_id)

    await turn_talks.attach(house, talk)
    await turn_talks.answers(house, talk)


async def test_gemini_runs_hooks_and_tools_of_the_account(
    gemini: GeminiRig, house: House
) -> None:
    await install(house, "gemini")
    host = await gemini.open_chat("gemini", "--yolo")
    talk = turn_talks.Talk(GEMINI, gemini.model, host, gemini.session_id)

    await turn_talks.attach(house, talk)
    await turn_talks.answers(house, talk)


async def test_qwen_runs_hooks_and_tools_of_the_account(
    qwen: QwenRig, house: House
) -> None:
    await install(house, "qwen")
    host = await qwen.open_chat("qwen", "--yolo")
    talk = turn_talks.Talk(QWEN, qwen.model, host, qwen.session_id)

    await turn_talks.attach(house, talk)
    await turn_talks.answers(house, talk)


async def test_pi_loads_the_extension_of_the_account(house: House, pi: PiRig) -> None:
    await install(house, "pi")
    chat = await pi.open_chat()

    await extension_chats.attach(house, chat)
    assert pi.model.requests == []


async def test_opencode_loads_the_plugin_of_the_account(
    house: House, opencode: OpencodeRig
) -> None:
    await install(house, "opencode")
    chat = await opencode.open_chat()

    await extension_chats.attach(house, chat)
    assert opencode.model.requests == []


# ---- a project that is set up besides ----------------------------------------------


@pytest.mark.waking
async def test_pi_with_both_is_woken_once(house: House, pi: PiRig) -> None:
    await install(house, "pi")
    await house.install("pi")
    chat = await pi.open_chat()
    await extension_chats.attach_woken(house, chat)
    alice = await house.script()

    await alice.send("wake up, bob")

    woken = await extension_chats.brought(pi.model, "wake up, bob")
    await extension_chats.answered(chat, woken)
    extension_chats.assert_came_once(pi.model, "wake up, bob")
    await house.until_row("bob", pending=0, unacknowledged=1)


@pytest.mark.waking
async def test_opencode_with_both_is_woken_once(
    house: House, opencode: OpencodeRig
) -> None:
    await install(house, "opencode")
    await house.install("opencode")
    chat = await opencode.open_chat()
    await extension_chats.attach_woken(house, chat)
    alice = await house.script()

    await alice.send("wake up, bob")

    woken = await extension_chats.brought(opencode.model, "wake up, bob")
    await extension_chats.answered(chat, woken)
    extension_chats.assert_came_once(opencode.model, "wake up, bob")
    await house.until_row("bob", pending=0, unacknowledged=1)


async def test_qwen_with_both_gets_a_message_once(qwen: QwenRig, house: House) -> None:
    await install(house, "qwen")
    await house.install("qwen")
    host = await qwen.open_chat("qwen", "--yolo")
    talk = turn_talks.Talk(QWEN, qwen.model, host, qwen.session_id)

    await turn_talks.attach(house, talk)
    await turn_talks.gets_a_message_once(house, talk)
