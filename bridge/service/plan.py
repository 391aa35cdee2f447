"""What a service manager is asked to run, and how it is asked anything.

Owns the shape that systemd's unit and launchd's plist are made from and read back
into. Promises that a manager which does not answer in time is an error that says
so, never a command that hangs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from bridge.errors import Unavailable
from bridge.paths import STATE_VARIABLE, Paths
from bridge.service.refusal import Supervisor

ANSWER_S = 10.0
_RUNTIME = "XDG_RUNTIME_DIR"
# What decides where the person's files are, what is found on PATH, and whom TLS
# trusts. A manager gives HOME and the rest of a session's variables itself; a proxy's
# address may hold a password, and stands in no file of ours.
_KEPT = (
    "AGENTWORKS_CONFIG",
    "PATH",
    "PYTHONPATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
)


class Plan(Struct, frozen=True):
    """A command line with an absolute program, and the variables it is given."""

    command: tuple[str, ...]
    variables: dict[str, str]

    @property
    def state(self) -> Path:
        """The state folder whose bridge this is."""
        return Path(self.variables.get(STATE_VARIABLE, ""))


class Standing(Struct, frozen=True):
    """What the manager says of the service.

    `is_loaded` when it knows our very file; `is_failed` when the bridge ended by
    itself and is started again or given up; `pid` of the bridge that it runs now, 0
    for none.
    """

    is_loaded: bool = False
    is_enabled: bool = False
    is_failed: bool = False
    pid: int = 0


class Service(Protocol):
    """One service manager of this person; every call raises Unavailable (75)."""

    kind: Supervisor
    file: Path

    def answers(self) -> bool:
        """True when it is there and answers; raises nothing."""
        ...

    def text(self, plan: Plan, paths: Paths) -> str:
        """The file's content; raises Refused (78) for what it cannot name."""
        ...

    def plan(self) -> Plan | None:
        """What the installed file runs; None without one or when it is not ours."""
        ...

    def load(self) -> None:
        """Read the file, which is there now, and start it with each login."""
        ...

    def unload(self) -> None:
        """Stop it, and start it no more; the file is removed."""
        ...

    def start(self) -> None:
        """Start it, whatever failed before; returns before it answers."""
        ...

    def stop(self) -> None:
        """Stop it until the next start or login."""
        ...

    def standing(self) -> Standing:
        """What it says of the service now."""
        ...

    def log_command(self, lines: int, follow: bool) -> Sequence[str]:
        """The command that shows the log; empty where the log file has it."""
        ...

    def logout_note(self) -> str:
        """What the person is to know of a logout; empty for nothing."""
        ...


def planned(
    paths: Paths,
    kind: Supervisor,
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> Plan:
    """What this installation would have run for this state folder."""
    # Only an installation pays for the log's library.
    from bridge.service.background import clean_environment, own_command

    known = clean_environment(environment)
    variables = {name: known[name] for name in _KEPT if known.get(name)}
    variables[STATE_VARIABLE] = str(paths.state)
    command = (*own_command(arguments), "--supervised-by", str(kind))
    return Plan(command, variables)


def session_environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables by which a manager's tool finds it.

    A coding agent's shell may lack the runtime folder; that must not make it start
    a second bridge beside the service.
    """
    runtime = Path(f"/run/user/{os.getuid()}")
    if environment.get(_RUNTIME) or not runtime.is_dir():
        return environment
    return {**environment, _RUNTIME: str(runtime)}


def ask(*command: str, within_s: float = ANSWER_S) -> subprocess.CompletedProcess[str]:
    """Run a manager's own tool; raises Unavailable when it is not there or silent."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=session_environment(os.environ),
            timeout=within_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(
            "manager_silent",
            f"{command[0]} is not there or does not answer.",
            "Look at it yourself: agentworks bridge status",
        ) from error


def demand(*command: str, within_s: float = ANSWER_S) -> str:
    """As ask; what it printed. Raises Unavailable with its words when it says no."""
    done = ask(*command, within_s=within_s)
    if done.returncode == 0:
        return done.stdout
    words = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
    raise Unavailable(
        "manager_refused",
        f"{' '.join(command)} failed: {words[-1].rstrip('.')}.",
        "See how it stands: agentworks bridge status",
    )


def user_name() -> str:
    """The name or number by which the managers know this person."""
    return str(os.getuid())
