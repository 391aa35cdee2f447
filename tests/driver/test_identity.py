"""Who is still there after a restart of the bridge."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridge.core.records import ProcessKey
from bridge.driver import identity
from bridge.providers import process


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
