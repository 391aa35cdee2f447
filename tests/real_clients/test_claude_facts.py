"""Facts about the real Claude Code that the product stands on.

Each is tried here with probe hooks and no product, so that a new version of the
program that breaks one is told apart from a fault of ours.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.claude_chats import Talk, has_our_plugin
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.probes import Probe, plugin_settings
from tests.real_clients.rig.processes import process_row
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

BLOCK = {"decision": "block", "reason": "Attached as bob."}
TOOL = "mcp__plugin_agentworks_messages__note"


def mail(text: str) -> dict[str, Any]:
    """A Stop hook's answer that hands a text to the model."""
    return {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": text}}


@pytest.fixture
def probe(claude: ClaudeRig) -> Probe:
    """Probe hooks, skill and MCP server, enabled in the local settings alone."""
    probe = Probe(claude.computer.folder / "probe")
    market = probe.write_claude_plugin(timeouts_s={"Stop": 2})
    claude.add_settings(plugin_settings(market))
    return probe


async def test_a_start_that_considers_no_plugin_of_the_project_is_told_at_once(
    claude: ClaudeRig,
) -> None:
    stream = await claude.open_stream()

    assert not await has_our_plugin(Talk(claude, stream))


async def test_a_plugin_enabled_in_local_settings_catches_a_typed_command(
    claude: ClaudeRig, probe: Probe
) -> None:
    chat = await claude.open_chat()
    probe.act_json("UserPromptExpansion", **BLOCK)

    await chat.type("/agentworks attach bob")
    await chat.pane.wait_text(BLOCK["reason"])

    (typed,) = probe.notes("UserPromptExpansion")
    (raw,) = probe.notes("UserPromptSubmit")
    assert typed.stdin["command_name"] == "agentworks:agentworks"
    assert typed.stdin["command_args"] == "attach bob"
    assert typed.stdin["session_id"] == chat.session_id
    assert raw.stdin["prompt"] == "/agentworks attach bob"
    assert claude.model.turns() == []


async def test_print_mode_takes_a_blocked_command_and_goes_on(
    claude: ClaudeRig, probe: Probe
) -> None:
    stream = await claude.open_stream()
    probe.act_json("UserPromptExpansion", **BLOCK)

    blocked = await stream.ask("/agentworks attach bob")
    answered = await stream.ask("hello")

    assert BLOCK["reason"] in blocked["result"]
    assert answered["result"] == "ok 1"
    assert blocked["session_id"] == answered["session_id"]
    assert len(claude.model.turns()) == 1


async def test_a_typed_command_that_no_hook_answers_reaches_the_model(
    claude: ClaudeRig, probe: Probe
) -> None:
    stream = await claude.open_stream()

    await stream.ask("/agentworks attach bob")

    (request,) = claude.model.turns()
    assert "THE SKILL BODY" in request.new_text


async def test_stop_context_continues_the_turn_once_and_is_seen_once(
    claude: ClaudeRig, probe: Probe
) -> None:
    stream = await claude.open_stream()
    text = "BEGIN " + "x" * 9_490 + " END"
    probe.act_json("Stop", **mail(text))

    result = await stream.ask("hello")

    _, continued = claude.model.turns()
    first, second = probe.notes("Stop")
    assert result["result"] == "ok 2"
    assert continued.new_text.count(text) == 1
    assert first.stdin["stop_hook_active"] is False
    assert second.stdin["stop_hook_active"] is True
    assert first.stdin["prompt_id"] == second.stdin["prompt_id"]
    assert len(probe.notes("UserPromptSubmit")) == 1


async def test_the_ninth_continuation_in_a_row_is_lost_after_it_was_printed(
    claude: ClaudeRig, probe: Probe
) -> None:
    stream = await claude.open_stream()
    for number in range(1, 11):
        probe.act_json("Stop", **mail(f"MAIL-{number}."))

    await stream.ask("hello")

    arrived = "".join(request.new_text for request in claude.model.turns())
    assert len(probe.notes("Stop")) == 9
    assert "MAIL-8." in arrived
    assert "MAIL-9." not in arrived


async def test_a_tool_call_starts_the_count_of_continuations_anew(
    claude: ClaudeRig, probe: Probe
) -> None:
    claude.add_settings({"permissions": {"allow": [TOOL]}})
    stream = await claude.open_stream()
    for number in range(1, 11):
        probe.act_json("Stop", **mail(f"MAIL-{number}."))
    claude.model.enqueue(Step(when="MAIL-5.", tool=TOOL))

    await stream.ask("hello")

    arrived = "".join(request.arrived for request in claude.model.turns())
    assert "noted" in arrived
    assert "MAIL-10." in arrived


async def test_an_execed_hook_is_a_direct_child_and_a_plain_one_a_grandchild(
    claude: ClaudeRig, probe: Probe
) -> None:
    plain = {"type": "command", "command": probe.plain_command("plain")}
    claude.add_settings({"hooks": {"Stop": [{"hooks": [plain]}]}})
    stream = await claude.open_stream()

    await stream.ask("hello")

    (ours,) = await probe.wait_notes("Stop")
    (other,) = await probe.wait_notes("plain")
    client = stream.process.pid
    assert ours.ancestry[1]["pid"] == client
    assert ours.ancestry[0]["session"] == ours.ancestry[0]["pid"]
    assert other.ancestry[1]["arguments"][:2] == ["/bin/sh", "-c"]
    assert other.ancestry[2]["pid"] == client
    assert ours.environment["CLAUDE_PID"] == str(client)
    assert ours.environment["CLAUDE_CODE_SESSION_ID"] == ours.stdin["session_id"]


async def test_the_clients_own_ancestors_are_no_coding_agent(
    claude: ClaudeRig, probe: Probe
) -> None:
    chat = await claude.open_chat()
    stream = await claude.open_stream()
    await stream.ask("hello")

    for note in await probe.wait_notes("SessionStart", 2):
        pids = [row["pid"] for row in note.ancestry]
        above = note.ancestry[2:]
        names = [row["arguments"][0] for row in above if row["pid"] != 1]
        assert pids[1] in (chat.process.pid, stream.process.pid)
        assert set(names) <= {"tmux"}


async def test_an_mcp_child_is_a_direct_child_and_keeps_living_through_clear(
    claude: ClaudeRig, probe: Probe
) -> None:
    claude.add_settings({"permissions": {"allow": [TOOL]}})
    chat = await claude.open_chat()
    before = chat.session_id
    await chat.type("/clear")
    await wait_until(lambda: chat.session_id != before, "another session id")
    claude.model.enqueue(Step(tool=TOOL))
    await chat.ask("hello", "ok 2")

    (child,) = probe.mcp_children()
    call = next(line for line in child if line.get("method") == "tools/call")
    cleared, started = probe.notes("SessionEnd")[-1], probe.notes("SessionStart")[-1]
    assert child[0]["ancestry"][1]["pid"] == chat.process.pid
    assert child[0]["environment"]["CLAUDE_CODE_SESSION_ID"] == before
    assert before not in str(call)
    assert chat.process.is_alive()
    assert (cleared.stdin["session_id"], cleared.stdin["reason"]) == (before, "clear")
    assert started.stdin["session_id"] == chat.session_id
    assert started.stdin["source"] == "clear"


async def test_text_written_to_the_session_socket_is_no_typed_command(
    claude: ClaudeRig, probe: Probe
) -> None:
    chat = await claude.open_chat()

    chat.write_to_socket("/agentworks attach evil")
    await wait_until(claude.model.turns, "a turn from the socket")

    (submitted,) = probe.notes("UserPromptSubmit")
    (request,) = claude.model.turns()
    assert submitted.stdin["prompt"] == "/agentworks attach evil"
    assert probe.notes("UserPromptExpansion") == []
    assert "/agentworks attach evil" in request.new_text


async def test_a_frozen_hook_is_ended_at_its_timeout_and_the_turn_ends(
    claude: ClaudeRig, probe: Probe
) -> None:
    stream = await claude.open_stream()
    probe.act("Stop", freeze=True)

    result = await stream.ask("hello")

    (note,) = probe.notes("Stop")
    pid = note.ancestry[0]["pid"]
    assert result["result"] == "ok 1"
    await wait_until(
        lambda: (row := process_row(pid)) is None or not row.is_alive(),
        "the end of the frozen hook",
    )
    assert len(claude.model.turns()) == 1


async def test_a_running_chat_sees_a_new_plugin_only_after_reload(
    claude: ClaudeRig,
) -> None:
    chat = await claude.open_chat()
    probe = Probe(claude.computer.folder / "late")
    claude.add_settings(plugin_settings(probe.write_claude_plugin()))
    await chat.ask("hello", "ok 1")
    before = probe.notes("Stop")

    await chat.type("/reload-plugins")
    await chat.pane.wait_text("Reloaded")
    await chat.ask("hello again", "ok 2")

    assert before == []
    await probe.wait_notes("Stop")
