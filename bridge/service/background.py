"""A bridge in the background, without a service manager.

Promises that it owes its starter nothing: a fresh interpreter in its own session,
with a chosen environment, no inherited descriptor, no terminal, no folder, and
SIGHUP ignored; and that one which ends at its start can be asked why.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import bridge
from bridge.errors import BridgeError, Refused
from bridge.log import open_log_file
from bridge.paths import Paths
from bridge.service.programs import install_programs

_LAST_WORDS = 64 * 1024  # bytes of the log that are looked at for the reason
_ERROR = "Error: "

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


class Launched:
    """A bridge that was just started, while its starter waits for it."""

    def __init__(self, child: subprocess.Popen[bytes], log: Path, spoken: int) -> None:
        self.pid = child.pid
        self.log = log
        self._child = child
        self._spoken = spoken

    def ended(self, within_s: float) -> int | None:
        """Its exit code if it ends within this time, else None."""
        try:
            return self._child.wait(within_s)
        except subprocess.TimeoutExpired:
            return None

    def leave(self) -> None:
        """It lives its own life from now on."""
        self._child.returncode = self._child.poll() or 0

    def reason(self, exit_code: int) -> BridgeError:
        """Why it ended, in its own words if it left any."""
        with open(self.log, "rb") as file:
            file.seek(self._spoken)
            said = file.read(_LAST_WORDS).decode("utf-8", "replace").splitlines()
        errors = [line for line in said if line.startswith(_ERROR)]
        if errors and exit_code > 0:
            words = errors[-1].removeprefix(_ERROR)
            return Refused("start_failed", words, exit_code=exit_code)
        return Refused(
            "start_failed",
            f"The bridge ended at its start (exit {exit_code}).",
            f"Its log says why: {self.log}",
        )


def launch(paths: Paths, command: Sequence[str]) -> Launched:
    """Start this command line as a bridge; its words go to the log.

    Makes the folders and the hook programs first; raises Refused (exit 78).
    """
    paths.prepare()
    install_programs(paths)
    log_file = paths.log / "bridge.log"
    with open_log_file(log_file) as log, _default_signals():
        spoken = log_file.stat().st_size
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=clean_environment(os.environ),
            start_new_session=True,
        )
    return Launched(child, log_file, spoken)


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
