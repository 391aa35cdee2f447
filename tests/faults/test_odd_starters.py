"""Fault rows 25, 41 and 42: a real bridge owes nothing to who started it."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from bridge.service.background import KEPT_VARIABLES
from tests.faults.capabilities import need_root, need_strace
from tests.journeys.rig.computer import Computer

# Starts a bridge from a process in which everything is odd; the word is the umask.
ODD = """
import os, signal, subprocess, sys
os.umask(int(sys.argv[1], 8))
held = [os.open(os.path.join(os.environ["HOME"], "mine"), os.O_RDWR | os.O_CREAT)]
held += os.pipe()
for each in held:
    os.set_inheritable(each, True)
for each in (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
    signal.signal(each, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
command = [sys.executable, "-P", "-m", "bridge", "--json", "bridge", "start"]
done = subprocess.run(command, close_fds=False, stdout=subprocess.PIPE, timeout=60)
sys.stdout.buffer.write(done.stdout)
sys.exit(done.returncode)
"""
CLOSES_AT_EXEC = 0o2000000
CHANGES_A_MODE = re.compile(r"\b(chmod|fchmod|fchmodat2?)\(")


@pytest.fixture
def pids() -> Iterator[list[int]]:
    """Of bridges in the background; ended by pid."""
    started: list[int] = []
    yield started
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def start_oddly(computer: Computer, pids: list[int], umask: str = "000") -> int:
    """The pid of a bridge that was started so."""
    environment = {
        **computer.environment,
        "ANTHROPIC_API_KEY": "cnry-key",
        "CODEX_THREAD_ID": "t-1",
        "MALLOC_PERTURB_": "7",
        "PYTHONWARNINGS": "error",
    }
    done = await trio.to_thread.run_sync(
        lambda: subprocess.run(
            [sys.executable, "-c", ODD, umask],
            env=environment,
            cwd=computer.home,
            stdout=subprocess.PIPE,
            check=True,
        )
    )
    pid = int(json.loads(done.stdout)["pid"])
    pids.append(pid)
    return pid


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (x.partition(":") for x in lines)}


def signals_in(mask: str) -> set[int]:
    return {number for number in range(1, 32) if int(mask, 16) >> (number - 1) & 1}


@pytest.mark.slow
async def test_a_bridge_in_the_background_keeps_nothing_of_an_odd_starter(
    computer: Computer, pids: list[int]
) -> None:
    need_root()  # nobody else may look into a bridge
    pid = await start_oddly(computer, pids)
    process = Path(f"/proc/{pid}")
    links = {int(one.name): os.readlink(one) for one in (process / "fd").iterdir()}
    log = str(computer.paths.log / "bridge.log")
    variables = (process / "environ").read_text().split("\0")
    status = status_of(pid)
    fields = (process / "stat").read_text().rpartition(")")[2].split()

    assert [links[number] for number in (0, 1, 2)] == ["/dev/null", log, log]
    assert str(computer.home / "mine") not in links.values()
    assert os.readlink(process / "cwd") == str(computer.paths.run)
    assert {each.partition("=")[0] for each in variables if each} <= (
        KEPT_VARIABLES | {"PYTHONPATH"}
    )
    assert signals_in(status["SigBlk"]) == set()
    python_s_own = {signal.SIGPIPE, signal.SIGXFSZ}
    assert signals_in(status["SigIgn"]) - python_s_own == {signal.SIGHUP}
    assert int(fields[3]) == pid  # a session of its own
    assert int(fields[4]) == 0  # no terminal


@pytest.mark.slow
async def test_every_descriptor_of_a_bridge_but_three_closes_when_it_starts_a_program(
    computer: Computer,
) -> None:
    need_root()  # nobody else may look into a bridge
    daemon = await computer.start_bridge()
    await computer.settled("bob")

    kept = {
        int(one.name)
        for one in Path(f"/proc/{daemon.pid}/fdinfo").iterdir()
        if not flags_in(described(one)) & CLOSES_AT_EXEC
    }

    assert kept == {0, 1, 2}


def described(one: Path) -> str:
    """What the kernel says of a descriptor; one that was closed meanwhile closes."""
    try:
        return one.read_text()
    except FileNotFoundError:
        return f"flags: {CLOSES_AT_EXEC:o}"


def flags_in(described: str) -> int:
    (line,) = [line for line in described.splitlines() if line.startswith("flags:")]
    return int(line.split()[1], 8)


@pytest.mark.slow
@pytest.mark.parametrize("umask", ["000", "022", "077"])
async def test_all_that_a_bridge_makes_is_private_under_any_umask(
    computer: Computer, pids: list[int], umask: str
) -> None:
    await start_oddly(computer, pids, umask)
    alice, _ = await computer.settled("alice"), await computer.settled("bob")
    await alice.send("bob", "so that every file is there")
    await computer.until_row("bob", pending=1)

    modes = {
        str(place.relative_to(computer.state)): found.st_mode
        for place in computer.state.rglob("*")
        for found in [place.lstat()]
    }

    assert "journal.sqlite3-wal" in modes
    assert "server/server.sqlite3-shm" in modes
    assert "run/server.sock" in modes
    assert "log/bridge.log" in modes
    programs = {"bin/ask", "bin/pipe"}
    for name, mode in modes.items():
        wanted = 0o700 if stat.S_ISDIR(mode) or name in programs else 0o600
        assert stat.S_IMODE(mode) == wanted, name


@pytest.mark.slow
@pytest.mark.crash
async def test_no_file_of_a_bridge_is_private_only_after_a_moment(
    computer: Computer,
) -> None:
    """Modes are right when a file is made: nothing is ever made private later."""
    need_strace()
    computer.install()
    record = computer.home / "calls"
    traced = "trace=/chmod,bind"
    strace = ["strace", "-f", "-qq", "-o", str(record), "-e", traced]
    code = (
        "import os, sys; os.umask(0);"
        f"os.execvp('strace', {strace!r} + [sys.executable, '-P', '-m', 'bridge',"
        " 'bridge', 'run'])"
    )
    daemon = await computer.run(["-c", code], "traced")
    await daemon.until(computer.answers, "an answer to hello")
    await computer.settled("bob")
    await computer.person("stop")
    await daemon.end()

    calls = record.read_text()
    assert calls.count("bind(") >= 2
    assert not CHANGES_A_MODE.search(calls), calls
