"""Two chats of one shared Codex daemon, whose process tells nothing apart.

In a terminal Codex serves all chats of a person from one daemon, so that every
hook, tool and shell of every chat has the same parent.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from msgspec import Struct

from tests.hooks.host import INITIALIZE, INITIALIZED
from tests.real_clients.codex_chats import (
    NO_SANDBOX,
    Talk,
    agentworks,
    attach,
    install,
    open_talk,
)
from tests.real_clients.house import House, Script
from tests.real_clients.offers import bodies_in
from tests.real_clients.rig.codex import CodexRig

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

# A program that stands for an MCP child and prints the answer to its last request.
_FORGED_CHILD = """\
import json, subprocess, sys
child = subprocess.Popen(
    [sys.argv[1], "mcp", "codex"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
for line in sys.argv[2:]:
    child.stdin.write(line.encode() + b"\\n")
    child.stdin.flush()
    answer = child.stdout.readline() if "id" in json.loads(line) else b""
print(answer.decode())
"""


class Apart(Struct, frozen=True):
    """Two attached chats of one daemon, and one who writes to both."""

    carol: Talk
    dave: Talk
    alice: Script


@pytest.fixture
async def apart(codex: CodexRig, house: House) -> Apart:
    """Chats with unsandboxed shells, their setup texts behind them."""
    await install(house)
    carol = await open_talk(codex, "carol", NO_SANDBOX, daemon=True, review=True)
    await attach(house, carol, "carol")
    dave = await open_talk(codex, "dave", NO_SANDBOX, daemon=True)
    await attach(house, dave, "dave")
    assert codex.daemon() is not None
    return Apart(carol, dave, await house.script())


async def test_each_chat_of_a_shared_daemon_gets_only_its_own_mail(
    house: House, apart: Apart
) -> None:
    for name in ("carol", "dave"):
        await apart.alice.send(f"for {name} alone", to=name)
        await house.until_row(name, pending=1)

    brought = await apart.carol.turn("next")
    waiting = await house.row("dave")
    await apart.dave.turn("next")

    assert bodies_in(brought) == apart.carol.bodies == ["for carol alone"]
    assert waiting["pending"] == 1
    assert apart.dave.bodies == ["for dave alone"]


async def test_the_tools_of_each_chat_of_a_shared_daemon_act_for_it_alone(
    house: House, apart: Apart
) -> None:
    await apart.carol.call(
        "send", target="agent:dave", message="are you there?", submission_id="s-1"
    )
    await house.until_row("dave", pending=1)
    await apart.dave.turn("next")

    assert apart.dave.bodies == ["are you there?"]
    assert '"you":"dave"' in await apart.dave.call("peers")
    assert '"messages":[]' in await apart.carol.call("read")


async def test_a_shell_of_one_chat_takes_nothing_of_the_other(
    house: House, apart: Apart
) -> None:
    """Neither as a hook, nor as a tool, nor as a command, with forged names or not.

    What is left, and is said to the person: a shell command that replaces itself
    (`exec env ...`) after it took every mark of Codex out of its environment is not
    told from a hook, and one that so replaces CODEX_THREAD_ID and CODEX_SESSION_ID
    with another chat's is taken for that chat's. The kernel no longer shows then
    which chat it was started for. A shell in Codex's sandbox reaches the bridge by
    none of these ways.
    """
    carol, dave = apart.carol, apart.dave
    await apart.alice.send("for dave alone", to="dave")
    await house.until_row("dave", pending=1)
    thread = f"CODEX_THREAD_ID={dave.thread_id}"
    names = f"{thread} CODEX_SESSION_ID={dave.thread_id}"
    hook = f"{house.ask} hook codex Stop < {stop_of(house, dave)}"
    read = agentworks(house, "bridge message read --provider codex")
    child = forged_child(house, dave)

    for forged in (hook, f"{names} {hook}"):
        assert "for dave alone" not in await carol.shell(forged)
    for forged in (child, f"{names} {child}"):
        assert "that program did not start it itself" in await carol.shell(forged)
    for forged in (f"{thread} {read}", f"{names} {read}"):
        said = await carol.shell(f"{forged} 2>&1; echo exit $?")
        assert "did not say which of its chats" in said
        assert "exit 3" in said

    assert (await house.row("dave"))["pending"] == 1
    await dave.turn("next")
    assert dave.bodies == ["for dave alone"]
    assert carol.bodies == []


async def test_the_second_chat_goes_on_when_the_first_terminal_is_closed(
    house: House, apart: Apart
) -> None:
    """The first chat stays attached for now: Codex ends it a minute later."""
    await apart.carol.host.quit()
    await apart.alice.send("still there?", to="dave")
    await house.until_row("dave", pending=1)

    await apart.dave.turn("next")

    assert apart.dave.bodies == ["still there?"]
    assert (await house.row("carol"))["state"] == "attached"


def stop_of(house: House, talk: Talk) -> Path:
    """A file with what Codex says on a Stop hook's stdin for this chat."""
    said = {
        "session_id": talk.thread_id,
        "turn_id": "turn",
        "transcript_path": None,
        "cwd": str(house.computer.project),
        "hook_event_name": "Stop",
        "model": "fake-model",
        "permission_mode": "default",
        "stop_hook_active": False,
        "last_assistant_message": "ok",
    }
    file = house.computer.folder / "stop.json"
    file.write_text(json.dumps(said))
    return file


def forged_child(house: House, talk: Talk) -> str:
    """A command that calls a tool as if Codex called it for this chat."""
    turn = {"session_id": talk.thread_id, "thread_id": talk.thread_id}
    call = {
        "name": "agent_message_read",
        "arguments": {},
        "_meta": {"x-codex-turn-metadata": turn},
    }
    lines = (
        INITIALIZE.decode(),
        INITIALIZED.decode(),
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
    )
    program = house.computer.folder / "child.py"
    program.write_text(_FORGED_CHILD)
    pipe = house.state / "bin" / "pipe"
    return shlex.join(["python3", str(program), str(pipe), *lines])
