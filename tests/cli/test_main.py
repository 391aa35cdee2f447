"""The command line as a whole: errors, exit codes, and what a command pays for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from bridge.cli.main import agentworks
from bridge.version import VERSION
from tests.cli.conftest import FakeDaemon, Run

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"trio", "httpx", "mcp", "sqlalchemy", "starlette", "hypercorn", "structlog"}


def test_the_version_is_the_one_of_the_distribution(run: Run) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert project["project"]["version"] == VERSION
    assert run("--version").out == f"agentworks, version {VERSION}\n"


def every_command(command: click.Command, words: tuple[str, ...]) -> list[str]:
    if not isinstance(command, click.Group):
        return [" ".join(words)]
    with click.Context(command) as context:
        names = command.list_commands(context)
        inner = {name: command.get_command(context, name) for name in names}
    found: list[str] = []
    for name, each in inner.items():
        assert each is not None
        found += every_command(each, (*words, name))
    return found


def test_every_command_is_there_and_has_its_help(run: Run) -> None:
    commands = every_command(agentworks, ())

    assert {
        "up",
        "attach",
        "detach",
        "agents",
        *(f"messages {w}" for w in ("register", "list", "unregister", "send", "read")),
        *(f"bridge {w}" for w in ("run", "start", "stop", "restart", "status")),
        *(
            f"bridge message {w}"
            for w in ("ack", "reply", "send", "read", "peers", "status", "purpose")
        ),
    } <= set(commands)
    for command in commands:
        ran = run(*command.split(), "--help")
        assert ran.exit_code == 0
        assert "--json" in ran.out


def test_agent_is_another_word_for_agents(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["agents"] = {"agents": []}

    assert run("agent").exit_code == 0
    assert daemon.asked == [{"verb": "agents"}]


@pytest.mark.parametrize("words", [("--json", "agents"), ("agents", "--json")])
def test_global_options_stand_before_or_after_the_command(
    run: Run, daemon: FakeDaemon, words: tuple[str, ...]
) -> None:
    daemon.replies["agents"] = {"agents": []}

    assert run(*words).document() == {"agents": []}


# ---- errors ---------------------------------------------------------------------


def test_an_error_is_one_line_on_standard_error(run: Run) -> None:
    ran = run("agents")

    assert ran.exit_code == 75
    assert ran.out == ""
    assert ran.err.startswith("Error: The AgentWorks bridge is not running")
    assert ran.err.count("\n") == 1
    assert "up" in ran.err


def test_with_json_an_error_is_one_document(run: Run) -> None:
    ran = run("agents", "--json")

    assert ran.out == ""
    assert json.loads(ran.err)["error"]["code"] == "bridge_not_running"


@pytest.mark.parametrize("exit_code", [1, 3, 4, 75, 78])
def test_a_refusal_of_the_daemon_ends_with_its_exit_code(
    run: Run, daemon: FakeDaemon, exit_code: int
) -> None:
    daemon.refuse("agents", "some_code", exit_code)

    ran = run("agents")

    assert ran.exit_code == exit_code
    assert ran.err == "Error: No agents. Do otherwise.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("agents", "--nonsense"),
        ("messages", "send"),
        ("messages", "send", "--message", "x"),
        ("messages", "send", "--message", "x", "--target", "a", "--inbox", "b"),
        ("messages", "read", "--agent", "a", "--limit", "0"),
        ("messages", "read", "--agent", "a", "--wait", "26"),
        ("bridge", "message", "ack", "--provider", "claude"),
    ],
)
def test_wrong_usage_is_exit_2_in_one_line(run: Run, words: tuple[str, ...]) -> None:
    ran = run(*words)

    assert ran.exit_code == 2
    assert ran.err.startswith("Error: ")
    assert "--help" in ran.err
    assert ran.err.count("\n") == 1
    in_json = run(*words, "--json")
    assert json.loads(in_json.err)["error"]["code"] == "usage"


def test_a_guess_at_a_mistyped_word_ends_in_one_mark(run: Run) -> None:
    said = run("bridge", "status", "--jsn").err

    assert "Did you mean '--json'? See: " in said


COMMANDS = [
    *(("messages", word) for word in ("register", "send", "read", "state")),
    *(
        ("bridge", "message", word)
        for word in ("send", "reply", "read", "ack", "peers", "purpose", "status")
    ),
]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_says_what_it_is(run: Run, words: tuple[str, ...]) -> None:
    options = run(*words, "--help").out.partition("Options:\n")[2].splitlines()

    for line in filter(lambda line: line.startswith("  --"), options):
        said = line.removeprefix("  ").partition("  ")[2].strip()
        assert said.partition("[")[0] or "--delivery" in line, line


@pytest.mark.parametrize("words", [("bridge", "message"), ("messages",), ("bridge",)])
def test_no_summary_of_a_command_is_cut(run: Run, words: tuple[str, ...]) -> None:
    commands = run(*words, "--help").out.partition("Commands:\n")[2]
    assert commands
    assert "..." not in commands


def test_no_words_are_answered_with_help(run: Run) -> None:
    ran = run()

    assert ran.exit_code == 2
    assert "Commands:" in ran.out


def test_an_unusable_home_is_exit_78_with_the_fix(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "relative")

    ran = run("agents")

    assert ran.exit_code == 78
    assert "Set HOME" in ran.err


def test_control_characters_of_an_error_are_shown_as_escapes(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["agents"] = {
        "error": {"code": "x", "message": "bad \x1b[31m\x9b \u202e name\nError: y"}
    }

    ran = run("agents")

    assert ran.err == "Error: bad \\u{1b}[31m\\u{9b} \\u{202e} name\\nError: y\n"


def test_with_a_chosen_server_only_a_bridge_that_uses_it_is_asked(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["agents"] = {"agents": []}
    daemon.replies["hello"] = {
        "version": "1",
        "pid": 1,
        "state": "running",
        "server": "embedded",
        "uptime_s": 1,
    }

    assert run("agents", "--server", "embedded").exit_code == 0
    ran = run("agents", "--server", "https://example.org")
    assert ran.exit_code == 4
    assert "https://example.org" in ran.err
    assert [request["verb"] for request in daemon.asked] == ["hello", "agents", "hello"]


# ---- as a process ---------------------------------------------------------------


def in_process(home: Path, *words: str, **variables: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "bridge", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"HOME": str(home), "PATH": os.environ["PATH"], **variables},
    )


def imported(home: Path, *words: str) -> set[str]:
    process = in_process(home, *words, PYTHONPROFILEIMPORTTIME="1")
    _, err = process.communicate()
    return {line.split("|")[-1].strip() for line in err.decode().splitlines()}


def test_the_version_pays_for_nothing_else(home: Path) -> None:
    modules = imported(home, "--version")

    assert "click" in modules
    assert not modules & (HEAVY | {"msgspec", "platformdirs", "bridge.paths"})


@pytest.mark.parametrize(
    "words",
    [
        ("bridge", "status"),
        ("agents",),
        ("detach", "x"),
        ("messages", "list"),
        ("bridge", "message", "peers", "--provider", "claude"),
        ("attach", "x"),
    ],
)
def test_a_question_to_the_daemon_pays_for_no_event_loop(
    home: Path, words: tuple[str, ...]
) -> None:
    modules = imported(home, *words)

    assert "bridge.local.client" in modules
    assert not modules & HEAVY


def test_a_reader_that_went_away_is_no_traceback(home: Path) -> None:
    process = in_process(home, "--help")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    process.wait()

    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


def test_a_watch_ends_with_ctrl_c_and_no_traceback(
    daemon: FakeDaemon, home: Path
) -> None:
    daemon.replies["agents"] = {"agents": []}
    process = in_process(home, "agents", "--watch", "--json")
    assert process.stdout is not None
    assert process.stdout.readline() == b"{\n"

    process.send_signal(signal.SIGINT)
    _, err = process.communicate()

    assert process.returncode == 130
    assert err.strip() == b""
