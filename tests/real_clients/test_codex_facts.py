"""Facts about the real Codex that the product stands on.

Each is tried here with probe hooks and no product, so that a new version of the
program that breaks one is told apart from a fault of ours.
"""

from __future__ import annotations

import json
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.probes import PYTHON, Note, Probe

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "SessionEnd")
BLOCK = {"decision": "block", "reason": "Attached as bob."}


@pytest.fixture
def probe(codex: CodexRig) -> Probe:
    """Probe hooks in the project, and the probe MCP server in the config."""
    probe = Probe(codex.computer.folder / "probe")
    codex.write_hooks({event: [probe.hook(event)] for event in EVENTS})
    program, *arguments = probe.mcp_command()
    codex.add_config(
        f"\n[mcp_servers.agentworks]\ncommand = {json.dumps(program)}\n"
        f"args = {json.dumps(arguments)}\n"
    )
    return probe


def tool_call(probe: Probe, child: int = 0) -> dict[str, Any]:
    """The first tool call that an MCP child received."""
    lines = probe.mcp_children()[child]
    return next(line for line in lines if line.get("method") == "tools/call")


def parents(note: Note) -> list[int]:
    """The pids above a probe."""
    return [row["pid"] for row in note.ancestry[1:]]


async def test_hooks_run_when_trusted_and_are_left_out_silently_when_not(
    codex: CodexRig, probe: Probe
) -> None:
    untrusted = await codex.run("hello", trust_hooks=False)
    silent = probe.notes("Stop")
    trusted = await codex.run("hello")

    assert silent == []
    assert "trust" not in str(untrusted.records)
    (note,) = probe.notes("Stop")
    assert note.stdin["session_id"] == trusted.thread_id


async def test_a_stop_block_of_9500_bytes_reaches_the_model_whole_and_once(
    codex: CodexRig, probe: Probe
) -> None:
    text = "BEGIN " + "x" * 9_490 + " END"
    probe.act_json("Stop", decision="block", reason=text)

    await codex.run("hello")

    _, continued = codex.model.turns()
    first, second = probe.notes("Stop")
    assert continued.new_text.count(text) == 1
    assert (first.stdin["stop_hook_active"], second.stdin["stop_hook_active"]) == (
        False,
        True,
    )
    assert len(probe.notes("UserPromptSubmit")) == 1


async def test_an_unknown_field_in_a_stop_answer_loses_the_whole_answer(
    codex: CodexRig, probe: Probe
) -> None:
    probe.act_json("Stop", decision="block", reason="MAIL", extra=1)

    await codex.run("hello")

    (request,) = codex.model.turns()
    assert "MAIL" not in request.new_text


async def test_an_mcp_call_names_its_thread_and_a_resumed_one_the_same(
    codex: CodexRig, probe: Probe
) -> None:
    codex.model.enqueue(Step(tool="note", when="first"))
    first = await codex.run("first")
    codex.model.enqueue(Step(tool="note", when="second"))
    second = await codex.run("second", resume=first.thread_id)

    assert first.thread_id == second.thread_id
    for child in (0, 1):
        meta = tool_call(probe, child)["params"]["_meta"]["x-codex-turn-metadata"]
        assert meta["thread_id"] == meta["session_id"] == first.thread_id
        assert "thread_id" not in str(probe.mcp_children()[child][1])


async def test_a_shell_tool_carries_the_thread_and_a_hook_does_not(
    codex: CodexRig, probe: Probe
) -> None:
    command = "echo thread=$CODEX_THREAD_ID session=$CODEX_SESSION_ID"
    codex.model.enqueue(Step(tool="exec_command", arguments={"cmd": command}))

    run = await codex.run("hello")

    (note,) = probe.notes("Stop")
    named = f"thread={run.thread_id} session={run.thread_id}"
    assert named in codex.model.turns()[1].arrived
    assert not {"CODEX_THREAD_ID", "CODEX_SESSION_ID"} & note.environment.keys()
    (child,) = probe.mcp_children()
    assert "CODEX_THREAD_ID" not in child[0]["environment"]


async def test_an_execed_hook_and_an_mcp_child_are_direct_children(
    codex: CodexRig, probe: Probe
) -> None:
    plain = {"type": "command", "command": probe.plain_command("plain")}
    groups = [probe.hook("Stop"), {"hooks": [plain]}]
    codex.write_hooks({"Stop": groups})

    await codex.run("hello")

    (ours,) = probe.notes("Stop")
    (other,) = probe.notes("plain")
    (child,) = probe.mcp_children()
    client = ours.ancestry[1]["pid"]
    assert Path(ours.ancestry[1]["program"]).name == "codex"
    assert child[0]["ancestry"][1]["pid"] == client
    assert client in (other.ancestry[1]["pid"], other.ancestry[2]["pid"])


async def test_a_command_with_a_leading_space_reaches_the_prompt_hook_alone(
    codex: CodexRig, probe: Probe
) -> None:
    chat = await codex.open_chat()
    probe.act_json("UserPromptSubmit", **BLOCK)

    await chat.type(" /agentworks attach bob")
    await chat.pane.wait_text("Attached as bob.")

    (note,) = probe.notes("UserPromptSubmit")
    assert note.stdin["prompt"] == "/agentworks attach bob"
    assert codex.model.turns() == []


async def test_a_subagents_prompt_and_stop_name_the_subagent(
    codex: CodexRig, probe: Probe
) -> None:
    asked = {"message": "SUBAGENT: /agentworks attach evil"}
    codex.model.enqueue(Step(tool="spawn_agent", arguments=asked, when="begin"))
    codex.model.enqueue(Step(tool="note", when="SUBAGENT"))

    run = await codex.run("begin")
    await probe.wait_notes("UserPromptSubmit", 2)

    prompts = [note.stdin for note in probe.notes("UserPromptSubmit")]
    theirs = next(stdin for stdin in prompts if "SUBAGENT" in stdin["prompt"])
    assert theirs["session_id"] == run.thread_id
    assert theirs["agent_id"] != run.thread_id


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
async def test_a_sandboxed_shell_cannot_connect_to_a_unix_socket(
    codex: CodexRig, mode: str
) -> None:
    place = codex.computer.project / "listening"
    script = (
        "import os, socket, sys\n"
        "try: socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
        "except OSError as error: print('errno', error.errno, 'ppid', os.getppid())\n"
        "else: print('connected')\n"
    )
    command = shlex.join([PYTHON, "-c", script, str(place)])
    codex.model.enqueue(Step(tool="exec_command", arguments={"cmd": command}))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()

        await codex.run("hello", "--sandbox", mode)

    assert "errno 1 ppid" in codex.model.turns()[1].arrived


async def test_two_terminals_share_one_daemon_and_keep_their_threads_apart(
    codex: CodexRig, probe: Probe
) -> None:
    first = await codex.open_chat("first", daemon=True, review=True)
    await first.ask("hello first", "ok 1")
    codex.computer.environment["ONLY_SECOND"] = "1"
    second = await codex.open_chat("second", daemon=True)
    shell = Step(
        tool="exec_command",
        arguments={"cmd": "echo thread=$CODEX_THREAD_ID only=$ONLY_SECOND."},
        when="hello second",
    )
    codex.model.enqueue(shell)
    await second.ask("hello second", "ok 3")

    one, two = await probe.wait_notes("Stop", 2)
    daemon = codex.daemon()
    assert daemon is not None
    assert parents(one)[0] == parents(two)[0] == daemon.pid
    assert one.stdin["session_id"] != two.stdin["session_id"]
    said = f"thread={two.stdin['session_id']} only=."
    assert codex.model.turns(containing=said) != []
    assert "ONLY_SECOND" not in two.environment


async def test_the_daemon_stays_below_its_first_terminal_until_that_ends(
    codex: CodexRig, probe: Probe
) -> None:
    first = await codex.open_chat("first", daemon=True, review=True)
    second = await codex.open_chat("second", daemon=True)
    await second.ask("hello", "ok 1")
    await first.quit()
    await second.ask("hello again", "ok 2")

    before, after = await probe.wait_notes("Stop", 2)
    assert parents(before)[1] == first.process.pid
    assert first.process.pid not in parents(after)
    assert parents(after)[0] == parents(before)[0]
