"""Facts about the real Claude Code that the product stands on.

Each is tried here with probe hooks and no product, so that a new version of the
program that breaks one is told apart from a fault of ours.
"""

from __future__ import annotations

import pytest

from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.probes import Probe, plugin_settings

pytestmark = [pytest.mark.real_client, pytest.mark.slow]


@pytest.fixture
def probe(claude: ClaudeRig) -> Probe:
    probe = Probe(claude.computer.folder / "probe")
    claude.add_settings(plugin_settings(probe.write_claude_plugin()))
    return probe


async def test_a_plugin_enabled_in_local_settings_loads_without_a_dialog(
    claude: ClaudeRig, probe: Probe
) -> None:
    chat = await claude.open_chat()

    (note,) = await probe.wait_notes("SessionStart")
    probe.act_json("UserPromptExpansion", decision="block", reason="Attached as bob.")
    await chat.type("/agentworks attach bob")
    await chat.pane.wait_text("Attached as bob.")
    (typed,) = probe.notes("UserPromptExpansion")

    assert note.stdin["session_id"] == chat.session_id
    assert typed.stdin["command_name"] == "agentworks:agentworks"
    assert typed.stdin["command_args"] == "attach bob"
    assert claude.model.turns() == []
