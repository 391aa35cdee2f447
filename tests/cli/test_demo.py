"""The demo, as a person runs it, as an agent's shell runs it, and interrupted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.cli import demo as demo_command
from bridge.cli.demo_scenes import perform
from bridge.cli.demo_stage import NotSo, Ran, Stage, open_stage
from bridge.clock import SystemClock
from bridge.providers.discovery import program_of
from bridge.providers.process import facts_of, pids_of_user

ROOT = Path(__file__).resolve().parents[2]
DEMO_S = 150
STEPS = 13

pytestmark = pytest.mark.slow
Environment = dict[str, str]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    """A home and a folder for temporary files of its own, short enough to be used."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    scratch = tempfile.mkdtemp(prefix="aw-")
    yield {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "TMPDIR": scratch,
    }
    shutil.rmtree(scratch)


def demo(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "bridge", "demo", *words]


def run(command: list[str], environment: Environment) -> dict[str, Any]:
    done = subprocess.run(
        command, env=environment, capture_output=True, timeout=DEMO_S, check=False
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def left_of(environment: Environment) -> list[int]:
    """Processes that were started with something of the scratch folder."""
    scratch = environment["TMPDIR"]
    found = filter(None, map(facts_of, pids_of_user()))
    return [each.pid for each in found if scratch in " ".join(each.arguments)]


@pytest.mark.timeout(DEMO_S + 30)
def test_every_step_passes_and_nothing_is_left(environment: Environment) -> None:
    answer = run(demo("--json"), environment)

    steps = [msg["title"] for msg in answer["steps"] if msg["ok"]]
    assert answer["ok"]
    assert len(steps) == STEPS, steps
    assert "Shall we look at the parser together?" in answer["steps"][3]["shown"]
    assert os.listdir(environment["TMPDIR"]) == []
    assert os.listdir(environment["HOME"]) == []
    assert left_of(environment) == []


@pytest.mark.timeout(DEMO_S + 30)
def test_it_passes_below_a_coding_agent_too(
    environment: Environment, tmp_path: Path
) -> None:
    agent = tmp_path / "claude"
    shutil.copy(shutil.which("sh") or "/bin/sh", agent)
    environment |= {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1"}
    with subprocess.Popen([agent, "-c", "read line"], stdin=subprocess.PIPE) as waiting:
        facts = facts_of(waiting.pid)
        assert facts is not None
        assert program_of(facts) == "claude"
        waiting.communicate()

    answer = run(
        [str(agent), "-c", '"$@"; exit $?', "sh", *demo("--json")], environment
    )

    assert answer["ok"]


def test_a_long_folder_for_temporary_files_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long, short = str(tmp_path).ljust(66, "x"), str(tmp_path)[:20]
    monkeypatch.setattr(tempfile, "tempdir", long)
    assert demo_command._scratch() == "/tmp"
    monkeypatch.setattr(tempfile, "tempdir", short)
    assert demo_command._scratch() == short


@pytest.mark.timeout(DEMO_S + 30)
def test_an_interrupted_demo_leaves_nothing(environment: Environment) -> None:
    with subprocess.Popen(demo(), env=environment, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith(b"ok"):
                break
        running.send_signal(signal.SIGINT)
        running.stdout.read()

    assert running.returncode == 130
    assert os.listdir(environment["TMPDIR"]) == []
    assert left_of(environment) == []


@pytest.mark.timeout(DEMO_S + 30)
def test_it_passes_without_a_compiler_and_keeps_its_folder(
    environment: Environment,
) -> None:
    environment["PATH"] = ""

    answer = run(demo("--json", "--keep"), environment)

    state = Path(answer["folder"], "state")
    assert answer["ok"]
    assert (state / "bin" / "ask").read_bytes().startswith(b"#!")
    assert (state / "journal.sqlite3").exists()


@pytest.mark.timeout(DEMO_S + 30)
def test_a_demo_that_fails_says_so_and_ends_in_1(environment: Environment) -> None:
    few_files = ["sh", "-c", 'ulimit -n 9 && exec "$@"', "sh", *demo("--json")]
    done = subprocess.run(
        few_files, env=environment, capture_output=True, timeout=DEMO_S, check=False
    )
    answer = json.loads(done.stdout)

    assert done.returncode == 1
    assert not answer["ok"]
    assert [step["ok"] for step in answer["steps"]].count(False) == 1
    assert os.listdir(environment["TMPDIR"]) == []
    assert left_of(environment) == []


@pytest.mark.timeout(DEMO_S)
async def test_a_bridge_whose_start_was_given_up_is_ended_too(tmp_path: Path) -> None:
    async with open_stage(tmp_path, SystemClock()) as stage:
        await stage.start_bridge("embedded")
        pid, stage.bridge_pid = stage.bridge_pid, 0

        ended = await stage.close()

    assert ended == 1
    assert facts_of(pid) is None


async def test_the_first_step_that_is_not_so_is_the_last(tmp_path: Path) -> None:
    class Burning(Stage):
        async def start_server(self) -> int:
            raise NotSo("the server is on fire")

    steps = [step async for step in perform(Burning(tmp_path, SystemClock()))]

    assert [(step.ok, step.said) for step in steps] == [
        (False, "the server is on fire")
    ]


@pytest.mark.parametrize(
    ("ran", "reason"),
    [
        (Ran(3, "", "Error: no."), "Error: no."),
        (Ran(0, "not JSON", ""), "not JSON"),
        (Ran(0, "[1]", ""), r"\[1\]"),
    ],
)
def test_a_command_that_said_no_document_is_not_so(ran: Ran, reason: str) -> None:
    with pytest.raises(NotSo, match=reason):
        ran.document()
