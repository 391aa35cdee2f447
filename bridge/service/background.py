"""Starting, stopping and finding the bridge, without a service manager.

Promises that a started bridge owes its starter nothing: a fresh interpreter in
its own session, with a chosen environment, no inherited descriptor, no terminal,
no folder, and SIGHUP ignored; that `start` returns when the bridge answers, or
says why it does not; and that `stop` returns when its lock is free.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import bridge
from bridge.clock import Clock
from bridge.errors import (
    EXIT_UNREACHABLE,
    BridgeError,
    Refused,
    Unavailable,
)
from bridge.local.client import call
from bridge.local.instance import is_claimed
from bridge.local.replies import HelloReply, StopReply, decode_answer
from bridge.local.requests import Hello, Stop
from bridge.paths import Paths
from bridge.service.programs import install_programs

START_S = 20.0
STOP_S = 15.0
HELLO_S = 2.0
_PAUSE_S = 0.05
_LAST_WORDS = 4096  # bytes of the log that are looked at for the reason

# All that a bridge needs of its starter's environment. Nothing that a coding
# agent's program puts there, no token, nothing that changes how Python starts.
KEPT_VARIABLES = frozenset(
    {
        "AGENTWORKS_CONFIG",
        "AGENTWORKS_STATE",
        "ALL_PROXY",
        "DBUS_SESSION_BUS_ADDRESS",
        "DISPLAY",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "NO_PROXY",
        "PATH",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "WAYLAND_DISPLAY",
        "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
        "all_proxy",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    }
)


def hello(paths: Paths) -> HelloReply:
    """Who runs this state folder's bridge; raises as client.call does."""
    return decode_answer(call(paths, Hello(), HELLO_S), HelloReply)


def start(
    paths: Paths,
    clock: Clock,
    arguments: Sequence[str] = (),
    command: Sequence[str] | None = None,
) -> tuple[HelloReply, bool]:
    """The running bridge, and whether this call started it.

    `arguments` go to the new bridge's `bridge run`; `command` replaces the whole
    command line. Raises what stands in the way: Refused (exit 78) for a wrong
    place or setting, Unavailable (exit 75) when it does not answer in time.
    """
    running = _hello_or_none(paths)
    if running is not None:
        return running, False
    # Only a start that starts something pays for the log's library.
    from bridge.log import open_log_file

    paths.prepare()
    install_programs(paths)
    log_file = paths.log / "bridge.log"
    with open_log_file(log_file) as log:
        spoken = log_file.stat().st_size
        child = _spawn(command or own_command(arguments), log.fileno())
    return _wait_for_hello(paths, clock, child, log_file, spoken)


def stop(paths: Paths, clock: Clock) -> int | None:
    """Stop the bridge and wait until it has let go; its pid, None without one.

    Raises Unavailable (exit 75) when it still holds its lock after STOP_S.
    """
    try:
        pid = decode_answer(call(paths, Stop()), StopReply).pid
    except Unavailable as error:
        if error.code != "bridge_not_running":
            raise
        return None
    by = clock.running() + STOP_S
    while is_claimed(paths):
        if clock.running() > by:
            raise Unavailable(
                "still_stopping",
                f"The bridge (pid {pid}) was told to stop and has not ended yet.",
                "Look again in a moment: agentworks bridge status",
            )
        time.sleep(_PAUSE_S)
    return pid


def own_command(arguments: Sequence[str]) -> Sequence[str]:
    """The command line of a bridge with our own interpreter and code."""
    return (sys.executable, "-P", "-m", "bridge", *arguments, "bridge", "run")


def clean_environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that a bridge gets; our own code stays importable."""
    kept = {key: value for key, value in environment.items() if key in KEPT_VARIABLES}
    package = Path(bridge.__path__[0])
    if package.parent.name != "site-packages":
        kept["PYTHONPATH"] = str(package.parent)
    return kept


def _hello_or_none(paths: Paths) -> HelloReply | None:
    try:
        return hello(paths)
    except Unavailable as error:
        if error.code != "bridge_not_running":
            raise
        return None


def _spawn(command: Sequence[str], log: int) -> subprocess.Popen[bytes]:
    with _default_signals():
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=clean_environment(os.environ),
            start_new_session=True,
        )


@contextmanager
def _default_signals() -> Iterator[None]:
    """What a child inherits: nothing blocked, nothing ignored but SIGHUP."""
    before = {number: signal.getsignal(number) for number in _inherited()}
    mask = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in before:
        signal.signal(number, signal.SIG_DFL)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, hangup)
        for number, was in before.items():
            signal.signal(number, was)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _inherited() -> Iterator[signal.Signals]:
    """The ignored signals: only those survive the start of another program."""
    never = (signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP)
    for number in signal.valid_signals():
        if number not in never and signal.getsignal(number) is signal.SIG_IGN:
            yield signal.Signals(number)


def _wait_for_hello(
    paths: Paths,
    clock: Clock,
    child: subprocess.Popen[bytes],
    log_file: Path,
    spoken: int,
) -> tuple[HelloReply, bool]:
    by = clock.running() + START_S
    while clock.running() < by:
        try:
            running = hello(paths)
        except Unavailable:
            ended = _ended(child)
            # Race: somebody else started one in the same moment and won; then
            # ours ends with 75 and theirs answers soon
            # (test_a_start_that_loses_the_race_finds_the_winner).
            if ended is not None and ended != EXIT_UNREACHABLE:
                raise _reason(log_file, spoken, ended) from None
        else:
            child.returncode = child.poll() or 0  # it is not ours to wait for
            return running, running.pid == child.pid
    raise Unavailable(
        "start_timeout",
        f"The bridge was started (pid {child.pid}) and does not answer yet.",
        f"Look at its log: {log_file}",
    )


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    try:
        return child.wait(_PAUSE_S)
    except subprocess.TimeoutExpired:
        return None


def _reason(log_file: Path, spoken: int, exit_code: int) -> BridgeError:
    with open(log_file, "rb") as file:
        file.seek(spoken)
        lines = file.read(_LAST_WORDS).decode("utf-8", "replace").splitlines()
    errors = [line for line in lines if line.startswith("Error: ")]
    if errors and exit_code > 0:
        said = errors[-1].removeprefix("Error: ")
        return Refused("start_failed", said, exit_code=exit_code)
    return Refused(
        "start_failed",
        f"The bridge ended at its start (exit {exit_code}).",
        f"Its log says why: {log_file}",
    )
