"""Who is still there after a restart of the bridge."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridge.core.caller import ChildCaller, OwnSession
from bridge.core.records import ProcessKey
from bridge.driver import identity
from bridge.errors import Refused
from bridge.providers import process
from tests.driver.desk import open_bridge
from tests.providers.captured import process as program


@contextmanager
def changing_program(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A `codex` that becomes another program at a line on its stdin."""
    codex = folder / "codex"
    shutil.copy(Path("/bin/sh").resolve(), codex)
    with subprocess.Popen(
        [codex, "-c", "echo ready; read line; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child
        child.communicate()


def key_of(pid: int) -> ProcessKey:
    facts = process.facts_of(pid)
    assert facts is not None
    return process.key_of(facts)


def test_a_process_that_runs_another_program_now_has_no_chat(tmp_path: Path) -> None:
    """Its pid and its start are those of the chat that was."""
    with changing_program(tmp_path) as child:
        key = key_of(child.pid)
        assert identity.still_there("codex", "thread-1", key)

        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("become\nan answer of cat\n")
        child.stdin.flush()
        assert child.stdout.readline() == "an answer of cat\n"

        assert key_of(child.pid) == key
        assert not identity.still_there("codex", "thread-1", key)


def test_a_script_is_whatever_its_process_runs(tmp_path: Path) -> None:
    with changing_program(tmp_path) as child:
        key = key_of(child.pid)

        assert identity.still_there("script", key.text(), key)


@pytest.mark.parametrize("provider", ["claude", "codex", "script"])
def test_a_process_of_another_start_or_boot_is_not_there(provider: str) -> None:
    key = key_of(1)

    for other in (
        ProcessKey(key.boot_id, key.pid, key.start + 1),
        ProcessKey("another boot", key.pid, key.start),
    ):
        assert not identity.still_there(provider, "session", other)


# ---- Cursor, whose word for a chat counts where its hooks have said the same --------

CLI = "/home/user/.local/share/cursor-agent/versions/2026.09.18"
CURSOR_CLI = program(f"{CLI}/node", "agent", f"{CLI}/index.js", pid=4711)
CURSOR_APP = program("/usr/share/cursor/cursor", pid=4712)


async def test_a_command_of_cursors_cli_speaks_for_a_chat_that_its_hooks_named(
    tmp_path: Path,
) -> None:
    caller = OwnSession("cursor", CURSOR_CLI, "chat-1")
    async with open_bridge(tmp_path) as bridge:
        with pytest.raises(Refused) as refused:
            identity.own_session(bridge, caller)
        assert refused.value.code == "session_unknown"

        bridge.hooked.add((process.key_of(CURSOR_CLI), "chat-1"))
        assert identity.own_session(bridge, caller) == "chat-1"


async def test_a_tool_of_cursors_cli_speaks_for_its_only_chat(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        caller = ChildCaller("cursor", CURSOR_CLI)
        assert identity.only_chat(bridge, caller) == ""

        bridge.hooked.add((process.key_of(CURSOR_CLI), "chat-1"))
        bridge.hooked.add((process.key_of(CURSOR_APP), "chat-2"))
        assert identity.only_chat(bridge, caller) == "chat-1"
        bridge.hooked.add((process.key_of(CURSOR_CLI), "chat-3"))
        assert identity.only_chat(bridge, caller) == ""


async def test_a_tool_of_cursors_app_speaks_for_nobody(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.hooked.add((process.key_of(CURSOR_APP), "chat-2"))

        assert identity.only_chat(bridge, ChildCaller("cursor", CURSOR_APP)) == ""
