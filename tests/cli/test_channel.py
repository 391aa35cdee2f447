"""`agentworks claude` and `agentworks mcp serve`: what is started, and with what."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.providers import claude_install, project_file
from bridge.providers.project_file import Plan
from bridge.providers.scope import Scope
from tests.cli.conftest import Run

ROOT = Path(__file__).resolve().parents[2]
FLAG = "--dangerously-load-development-channels=plugin:agentworks@agentworks"
CONFIGURED = ["--agent", "reviewer", "--purpose", "Review", "--native-session-id", "s"]


@pytest.fixture
def claude(home: Path) -> Path:
    """A `claude` that says what it was given; the folder it lies in."""
    program = home / "programs" / "claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o700)
    return program.parent


def started(home: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, which it becomes."""
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-P", "-m", "bridge", "claude", *words],
        cwd=home,
        env={"HOME": str(home), "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ((), [FLAG]),
        (("--", "-c", "--model", "opus"), ["-c", "--model", "opus", FLAG]),
        (("--", "fix the parser"), ["fix the parser", FLAG]),
        (("--", "-p", "--", "-x"), ["-p", FLAG, "--", "-x"]),
    ],
)
def test_claude_code_gets_the_persons_words_and_our_channel(
    home: Path, claude: Path, given: tuple[str, ...], passed: list[str]
) -> None:
    done = started(home, claude, *given)

    assert done.stdout.splitlines() == passed
    assert "Starting: claude" in done.stderr
    assert FLAG in done.stderr


def test_a_folder_without_the_plugin_is_told_how_to_get_it(
    home: Path, claude: Path
) -> None:
    assert "agentworks attach --provider claude" in started(home, claude).stderr


def test_the_plugin_of_the_whole_account_is_enough(home: Path, claude: Path) -> None:
    state = home / ".local" / "state" / "agentworks"
    templates = ROOT / "packaging" / "plugins"
    plan = claude_install.plan(home, state, templates, Scope.ACCOUNT)
    project_file.apply(Plan(changes=plan.changes))

    assert "not set up" not in started(home, claude).stderr


def test_without_claude_code_nothing_is_started(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))
    ran = run("claude")

    assert ran.exit_code != 0
    assert "not on PATH" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        CONFIGURED,
        ["--claude-channel", *CONFIGURED[:4]],
        ["--claude-channel", *CONFIGURED[:5], " "],
        ["--claude-channel", "--purpose", "Review"],
    ],
)
def test_half_a_configuration_attaches_nothing(run: Run, words: list[str]) -> None:
    ran = run("mcp", "serve", *words)

    assert ran.exit_code == 2
    assert "go together" in ran.err
