"""A bridge in the background owes its starter nothing, and is found and ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.lifecycle import start, stop
from bridge.clock import SystemClock
from bridge.errors import BridgeError, Refused, Unavailable
from bridge.local.instance import Instance
from bridge.paths import Paths
from bridge.service.background import KEPT_VARIABLES

HOLD = """
import fcntl, sys
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
PRETENDER = Path(__file__).with_name("pretender.py")
Begin = Callable[..., tuple[int, bool]]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.delenv("CODEX_SANDBOX_NETWORK_DISABLED", raising=False)
    return Paths(config=tmp_path, state=tmp_path / "s", config_file=tmp_path / "c.json")


@pytest.fixture
def begin(paths: Paths) -> Iterator[Begin]:
    """Starts a pretender; all are ended and reaped."""
    pids: list[int] = []

    def begin_one(*words: str) -> tuple[int, bool]:
        command = (sys.executable, str(PRETENDER), str(paths.state), *words)
        answer, is_new = start(paths, SystemClock(), command=command)
        pids.append(answer.pid)
        return answer.pid, is_new

    yield begin_one
    for pid in pids:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def seen(paths: Paths) -> Any:
    return json.loads((paths.state / "seen.json").read_text())


def test_start_returns_when_the_bridge_answers(begin: Begin) -> None:
    pid, is_new = begin()

    assert is_new
    assert begin() == (pid, False)


@linux_only
def test_the_bridge_has_a_session_a_folder_and_descriptors_of_its_own(
    begin: Begin, paths: Paths
) -> None:
    read, write = os.pipe()
    os.set_inheritable(read, True)
    begin()
    os.close(read)
    os.close(write)

    found = seen(paths)
    log = str(paths.log / "bridge.log")
    assert found["session"] is True
    assert found["folder"] == "/"
    assert found["descriptors"] == [0, 1, 2]
    assert (found["stdin"], found["stdout"], found["stderr"]) == ("/dev/null", log, log)
    assert (paths.log / "bridge.log").stat().st_mode & 0o777 == 0o600


@linux_only
def test_the_bridge_ignores_a_hangup_and_nothing_else_of_its_starter(
    begin: Begin, paths: Paths
) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hangup = signal.getsignal(signal.SIGHUP)
    begin()
    after = signal.signal(signal.SIGTERM, before)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})

    found = seen(paths)
    python_s_own = {signal.SIGPIPE, getattr(signal, "SIGXFSZ", signal.SIGPIPE)}
    assert set(found["ignored"]) - python_s_own == {signal.SIGHUP}
    assert found["blocked"] == 0
    assert after is signal.SIG_IGN
    assert signal.SIGUSR1 in mask
    assert signal.getsignal(signal.SIGHUP) is hangup


def test_the_bridge_gets_a_chosen_environment(
    begin: Begin, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "cnry-secret")
    monkeypatch.setenv("CODEX_THREAD_ID", "t-1")
    monkeypatch.setenv("PYTHONSTARTUP", "/tmp/x")
    monkeypatch.setenv("LD_PRELOAD", "")
    begin()

    python_s_own = {"PYTHONPATH", "LC_CTYPE"}
    assert set(seen(paths)["variables"]) <= KEPT_VARIABLES | python_s_own


# ---- a start that fails -----------------------------------------------------------


@pytest.mark.parametrize("exit_code", [1, 3, 78])
def test_a_bridge_that_ends_at_once_says_why(
    begin: Begin, paths: Paths, exit_code: int
) -> None:
    (paths.log).mkdir(parents=True)
    for folder in (paths.state, paths.log):
        folder.chmod(0o700)
    (paths.log / "bridge.log").write_text("Error: an old one. Forget it.\n")
    (paths.log / "bridge.log").chmod(0o600)

    with pytest.raises(Refused) as caught:
        begin(str(exit_code), "Error: The journal is broken. Move it away.")

    assert caught.value.message == "The journal is broken. Move it away."
    assert caught.value.exit_code == exit_code


@pytest.mark.parametrize("ending", ["1", "killed"])
def test_a_bridge_that_ends_without_words_names_its_log(
    begin: Begin, paths: Paths, ending: str
) -> None:
    with pytest.raises(Refused) as caught:
        begin(ending, "Traceback: something")

    assert str(paths.log / "bridge.log") in caught.value.hint
    assert "Traceback" not in caught.value.sentence()


def test_an_unsafe_state_folder_starts_nothing(begin: Begin, paths: Paths) -> None:
    paths.state.mkdir(mode=0o750)
    paths.state.chmod(0o750)

    with pytest.raises(Refused, match="0750"):
        begin()

    assert list(paths.state.iterdir()) == []


def test_below_a_sandbox_no_second_bridge_is_started(
    begin: Begin, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_SANDBOX_NETWORK_DISABLED", "1")

    with pytest.raises(BridgeError, match="sandbox"):
        begin()

    assert not paths.state.exists()


def test_a_bridge_that_is_there_and_busy_is_not_started_again(
    begin: Begin, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths.prepare()
    monkeypatch.chdir(paths.run)
    with socket.socket(socket.AF_UNIX) as stopped, socket.socket(socket.AF_UNIX) as one:
        stopped.bind("bridge.sock")
        stopped.listen(0)
        one.connect("bridge.sock")

        with pytest.raises(Unavailable) as caught:
            begin()

    assert caught.value.code == "bridge_busy"
    assert not (paths.state / "seen.json").exists()


def test_a_start_that_loses_the_race_finds_the_winner(
    begin: Begin, paths: Paths
) -> None:
    """The other starter holds the lock already, and answers a moment later."""
    paths.prepare()
    winner = subprocess.Popen([sys.executable, str(PRETENDER), str(paths.state)])
    try:
        pid, is_new = begin("75", "Error: A bridge is already running.")

        assert (pid, is_new) == (winner.pid, False)
    finally:
        winner.kill()
        winner.wait()


def test_a_bridge_that_is_stopping_is_waited_for_and_followed(
    begin: Begin, paths: Paths
) -> None:
    """Its lock is held, and nobody listens any more."""
    paths.prepare()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(paths.lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    release = threading.Timer(0.3, holder.communicate)
    release.start()

    pid, is_new = begin()

    release.join()
    assert is_new
    assert pid != holder.pid


def test_a_bridge_that_may_be_tried_again_is_not_tried_in_a_circle(
    begin: Begin, paths: Paths
) -> None:
    with pytest.raises(Refused, match="The disk is full") as caught:
        begin("75", "Error: The disk is full. Make room.")

    assert caught.value.exit_code == 75


# ---- a stop -----------------------------------------------------------------------


def test_stop_returns_when_the_lock_is_free(
    begin: Begin, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, _ = begin()

    assert stop(paths, SystemClock()) == pid
    monkeypatch.chdir(paths.state)  # a claim changes it; this puts it back
    Instance.claim(paths).release()


def test_a_bridge_that_is_not_there_needs_no_stop(paths: Paths) -> None:
    assert stop(paths, SystemClock()) is None
    assert not paths.state.exists()
