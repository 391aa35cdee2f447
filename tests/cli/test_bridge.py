"""`bridge` and `up` with a real daemon: started, seen, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bridge.paths import Paths
from tests.cli.conftest import FakeDaemon, Run

STATUS = {
    "version": "0.1.0",
    "pid": 7,
    "state": "running",
    "server": "embedded",
    "uptime_s": 3700,
    "attachments": [
        {
            "name": "bob",
            "provider": "claude",
            "session": "0b3c",
            "state": "attached",
            "route": "hook",
            "pending": 1,
            "why": "no turn has ended",
        }
    ],
    "waiting": ["bob: 1 waiting, no turn has ended"],
    "warnings": ["The embedded server is down."],
    "last_privileged": "detach by zsh (pid 9)",
    "told": ["2026-11-29T16:05:29Z The name eve moved\x1b[2J."],
}


@pytest.fixture
def started(paths: Paths) -> Iterator[list[int]]:
    """The pids of bridges that a test started; they are ended and reaped."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def reap(pid: int) -> None:
    """Our own child, which in life belongs to nobody any more."""
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def test_up_starts_a_bridge_once_and_stop_ends_it(
    run: Run, paths: Paths, started: list[int]
) -> None:
    first = run("up", "--json").document()
    started.append(first["pid"])
    again = run("bridge", "start")
    up = run("up")
    status = run("bridge", "status", "--json").document()

    assert first["state"] == "running"
    assert again.exit_code == up.exit_code == 0
    assert f"already running (pid {first['pid']}" in again.out
    assert "agentworks attach" in up.out
    assert status["pid"] == first["pid"]
    stopped = run("bridge", "stop")
    assert f"Stopped the bridge (pid {first['pid']})" in stopped.out
    reap(first["pid"])
    assert not paths.socket.exists()
    assert run("bridge", "status").exit_code == 75
    assert run("bridge", "stop").out == "The bridge is not running.\n"
    assert run("bridge", "stop", "--json").document() == {"stopped": False, "pid": None}


def test_a_restart_is_another_process(
    run: Run, paths: Paths, started: list[int]
) -> None:
    first = run("bridge", "start", "--json").document()
    started.append(first["pid"])

    second = run("bridge", "restart", "--json").document()
    started.append(second["pid"])

    assert second["pid"] != first["pid"]
    assert run("bridge", "status", "--json").document()["pid"] == second["pid"]
    run("bridge", "stop")


def test_a_start_with_another_server_than_the_running_bridge_has_says_so(
    run: Run, paths: Paths, started: list[int]
) -> None:
    first = run("bridge", "start", "--json").document()
    started.append(first["pid"])
    other = f"unix://{paths.state}/other.sock"

    for words in (("up",), ("bridge", "start")):
        assert run(*words, "--server", "embedded").exit_code == 0
        ran = run(*words, "--server", other)
        assert ran.exit_code == 4
        assert "uses the server embedded" in ran.err
        assert f"bridge restart --server {other}" in ran.err
    run("bridge", "stop")
    reap(first["pid"])


def test_a_wrong_setting_ends_nothing_and_starts_nothing(
    run: Run, paths: Paths
) -> None:
    paths.config.mkdir(parents=True, mode=0o700)
    paths.config_file.write_text("{}")
    paths.config_file.chmod(0o644)

    for words in (("up",), ("bridge", "start"), ("bridge", "restart")):
        ran = run(*words)
        assert ran.exit_code == 78
        assert "chmod 600" in ran.err
    assert not paths.socket.exists()


def test_the_state_folder_is_refused_before_anything_starts(
    run: Run, paths: Paths
) -> None:
    paths.state.chmod(0o750)

    ran = run("up")

    assert ran.exit_code == 78
    assert "chmod 700" in ran.err


def test_status_shows_all_that_waits_and_why(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["status"] = STATUS

    out = run("bridge", "status").out

    assert "running, version 0.1.0, pid 7, up 1 h" in out
    assert "detach by zsh (pid 9)" in out
    assert "! The embedded server is down." in out
    assert "bob: 1 waiting, no turn has ended" in out
    assert "16:05:29Z The name eve moved\\u{1b}[2J." in out
    document = run("bridge", "status", "--json").document()
    assert document.pop("service")["kind"] == "none"
    assert document == STATUS


def test_a_second_bridge_in_a_terminal_names_the_first(
    run: Run, home: Path, started: list[int]
) -> None:
    first = run("bridge", "start", "--json").document()
    started.append(first["pid"])

    second = subprocess.run(
        [sys.executable, "-m", "bridge", "bridge", "run"],
        cwd=Path(__file__).resolve().parents[2],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )

    assert second.returncode == 75
    assert f"(pid {first['pid']})" in second.stderr
    run("bridge", "stop")


def test_a_named_settings_file_that_is_not_there_starts_nothing(
    run: Run, tmp_path: Path
) -> None:
    ran = run("--config", str(tmp_path / "nobody.json"), "bridge", "start")

    assert ran.exit_code == 78
    assert "There is no settings file" in ran.err
