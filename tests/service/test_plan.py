"""What a manager is asked to run, and how its tools are run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bridge.errors import Unavailable
from bridge.paths import Paths
from bridge.service.plan import ask, demand, planned, session_environment
from bridge.service.refusal import Supervisor

PATHS = Paths(Path("/c"), Path("/s"), Path("/c/config.json"))


@pytest.mark.parametrize("kind", list(Supervisor))
def test_the_planned_command_is_ours_and_says_who_watches_over_it(
    kind: Supervisor,
) -> None:
    plan = planned(PATHS, kind, ("--server", "embedded"), {"HOME": "/h"})

    assert plan.command[0] == sys.executable
    assert plan.command[-4:] == ("bridge", "run", "--supervised-by", kind.value)
    assert "--server" in plan.command
    assert plan.state == PATHS.state


def test_the_planned_folders_are_those_of_this_command() -> None:
    environment = {
        "HOME": "/h",
        "PATH": "/bin",
        "XDG_CONFIG_HOME": "/x/config",
        "XDG_STATE_HOME": "",
        "AGENTWORKS_STATE": "/not/this",
        "AGENTWORKS_CONFIG": "/x/config.json",
        "TERM": "xterm",
    }

    found = planned(PATHS, Supervisor.SYSTEMD, (), environment).variables

    found.pop("PYTHONPATH", None)
    assert found == {
        "AGENTWORKS_CONFIG": "/x/config.json",
        "AGENTWORKS_STATE": "/s",
        "PATH": "/bin",
        "XDG_CONFIG_HOME": "/x/config",
    }


def test_a_service_trusts_the_authority_that_its_person_chose() -> None:
    chosen = {"SSL_CERT_FILE": "/x/ca.pem", "SSL_CERT_DIR": "/x/certs"}

    found = planned(PATHS, Supervisor.SYSTEMD, (), chosen).variables

    assert found.items() >= chosen.items()


def test_a_tool_that_is_not_there_is_an_error_that_says_so() -> None:
    with pytest.raises(Unavailable, match="/nonexistent/systemctl is not there"):
        ask("/nonexistent/systemctl")


def test_a_tool_that_does_not_answer_is_not_waited_for() -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        ask("sleep", "600", within_s=0.1)


@pytest.mark.parametrize(
    ("script", "why"),
    [("echo a >&2; echo 'No unit.' >&2; exit 5", "No unit"), ("exit 5", "exit 5")],
)
def test_what_a_tool_says_no_with_is_passed_on(script: str, why: str) -> None:
    with pytest.raises(Unavailable, match=f"failed: {why}\\."):
        demand("sh", "-c", script)


def test_a_shell_without_a_runtime_folder_still_finds_the_manager() -> None:
    given = {"PATH": "/bin"}
    runtime = f"/run/user/{os.getuid()}"
    there = {"XDG_RUNTIME_DIR": runtime} if Path(runtime).is_dir() else {}

    assert session_environment(given) == given | there
    chosen = {"XDG_RUNTIME_DIR": "/elsewhere"}
    assert session_environment(chosen) == chosen
