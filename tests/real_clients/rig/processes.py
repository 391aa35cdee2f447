"""Real programs started as a person would, apart from whatever runs the tests.

Owns starting, finding and ending them. Promises that a started program has a
cleaned environment and no ancestor of ours, since the tests may run below a
coding agent; and that only processes of the scratch home are ever ended, each
by its pid with its start time checked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tests.real_clients.rig.waiting import NeverHappened, wait_until

_RECORD_PID = 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec "$@"'
_RECORD_EXIT = 'p=$0; "$@"; echo $? >"$p.new"; mv "$p.new" "$p"'


class ProcessRow(Struct, frozen=True):
    """One line of the process table; `start` is in ticks since boot."""

    pid: int
    parent_pid: int
    session: int
    start: int
    state: str

    def is_alive(self) -> bool:
        """The same process, not a later one of that number, and no zombie."""
        now = process_row(self.pid)
        return now is not None and now.start == self.start and now.state not in "ZX"


class Finished(Struct, frozen=True):
    """What a program left behind."""

    code: int
    out: str
    err: str


def process_row(pid: int) -> ProcessRow | None:
    """The process table's line for a pid, or None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    words = stat.rpartition(")")[2].split()
    return ProcessRow(
        pid=pid,
        state=words[0],
        parent_pid=int(words[1]),
        session=int(words[3]),
        start=int(words[19]),
    )


def environment_of(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty if unreadable."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition("=") for entry in os.fsdecode(raw).split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def arguments_of(pid: int) -> list[str]:
    """The command line of a process; empty if unreadable."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return os.fsdecode(raw).split("\0")[:-1]


def runs(pid: int, program: str) -> bool:
    """Whether a process is this program, or an interpreter running that script."""
    words = arguments_of(pid)
    script = [word for word in words[1:] if not word.startswith("-")][:1]
    return program in {Path(word).name for word in (*words[:1], *script)}


def processes_of(home: Path) -> Iterator[ProcessRow]:
    """Every live process that was started with this HOME."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        if environment_of(int(entry.name)).get("HOME") == str(home):
            row = process_row(int(entry.name))
            if row is not None and row.is_alive():
                yield row
    # Without root nobody sees a bridge's environment: it says its pid by its lock.
    lock = home / ".local/state/agentworks/run/lock"
    hidden = process_row(int(lock.read_text() or 0)) if _is_held(lock) else None
    if hidden is not None and hidden.is_alive() and not environment_of(hidden.pid):
        yield hidden


def _is_held(lock: Path) -> bool:
    if not lock.exists():
        return False
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


async def end_processes_of(home: Path) -> None:
    """End them all: SIGTERM, then SIGKILL for those that stay 3 seconds.

    Raises NeverHappened when something outlives even that.
    """
    try:
        await _signal_all(home, signal.SIGTERM)
    except NeverHappened:
        await _signal_all(home, signal.SIGKILL)


async def _signal_all(home: Path, sign: signal.Signals) -> None:
    rows = list(processes_of(home))
    for row in rows:
        end(row, sign)
    await wait_until(lambda: _is_empty(home, rows), "an empty computer", 3)


def _is_empty(home: Path, ending: list[ProcessRow]) -> bool:
    # Race: a dying process loses its environment before it is gone.
    return not any(row.is_alive() for row in ending) and not any(processes_of(home))


def end(row: ProcessRow, sign: signal.Signals) -> None:
    """Signal exactly this process, or nothing if it is gone."""
    try:
        descriptor = os.pidfd_open(row.pid)
    except ProcessLookupError:
        return
    try:
        # Race: the pid may have been reused before it was opened.
        if row.is_alive():
            signal.pidfd_send_signal(descriptor, sign)
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)


async def start_apart(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    record: Path,
    stdin: int = subprocess.DEVNULL,
) -> ProcessRow:
    """Start a long-lived program with its own session and no parent of ours.

    Its output goes to `record` plus `.out` and `.err`. `stdin` is a descriptor
    that it inherits.
    """
    pid_file = record.with_suffix(".pid")
    _fork(_RECORD_PID, pid_file, command, environment, folder, record, stdin)
    await wait_until(pid_file.exists, f"the start of {command[0]}")
    row = process_row(int(pid_file.read_text()))
    assert row is not None, f"{command[0]} ended at once: {record}.err"
    return row


async def run_apart(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    record: Path,
    deadline_s: float,
) -> Finished:
    """Run a program to its end, likewise apart, with an empty stdin."""
    code_file = record.with_suffix(".code")
    empty = subprocess.DEVNULL
    _fork(_RECORD_EXIT, code_file, command, environment, folder, record, empty)
    await wait_until(code_file.exists, f"the end of {command[0]}", deadline_s)
    return Finished(
        code=int(code_file.read_text()),
        out=record.with_suffix(".out").read_text(errors="replace"),
        err=record.with_suffix(".err").read_text(errors="replace"),
    )


def _fork(
    shell_line: str,
    zeroth: Path,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    record: Path,
    stdin: int,
) -> None:
    if shutil.which(command[0], path=environment.get("PATH")) is None:
        raise FileNotFoundError(command[0])
    out, err = record.with_suffix(".out"), record.with_suffix(".err")
    with out.open("wb") as output, err.open("wb") as errors:
        # setsid's child outlives it, so the kernel gives it to pid 1.
        subprocess.run(
            ["setsid", "--fork", "sh", "-c", shell_line, str(zeroth), *command],
            env=dict(environment),
            cwd=folder,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            check=True,
            timeout=10,
        )
