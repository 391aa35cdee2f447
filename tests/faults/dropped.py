"""The real command, run as `OTHER_UID` by root, or by root without its powers.

Owns a home that others may pass through, and every process started there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from bridge.paths import Paths
from tests.faults.capabilities import OTHER_UID
from tests.journeys.rig.running import END_S
from tests.real_clients.rig.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
DROP = ["setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}", "--clear-groups"]
POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
PYTHON = [sys.executable, "-P"]


class Person:
    """Whoever `become` makes of us, and what they start."""

    def __init__(self, home: Path, become: list[str]) -> None:
        self.home = home
        self.become = become
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "CNRY": "cnry-quillwort",
        }
        state = home / ".local/state/agentworks"
        config = home / ".config/agentworks"
        self.paths = Paths(config, state, config / "config.json")
        self.said = ""
        self._started: list[subprocess.Popen[str]] = []
        self._pids: list[int] = []

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A program of theirs, to its end."""
        return subprocess.run(
            [*self.become, *words],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=END_S * 2,
            check=False,
        )

    def agentworks(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Their command line."""
        return self.run(*PYTHON, "-m", "bridge", *words)

    async def in_the_background(self) -> int:
        """`agentworks bridge start`; the bridge's pid."""
        command = [*PYTHON, "-m", "bridge", "--json", "bridge", "start"]
        answer = await trio.to_thread.run_sync(lambda: self.run(*command))
        assert answer.returncode == 0, answer
        pid = int(json.loads(answer.stdout)["pid"])
        self._pids.append(pid)
        return pid

    async def in_a_terminal(self) -> int:
        """`agentworks bridge run`, serving; its pid."""
        return await self._start("serving", "bridge", "run")

    async def a_server_alone(self) -> int:
        """`agentworks server run`, serving; its pid."""
        socket = self.home / "server.sock"
        return await self._start("", "server", "run", "--socket", str(socket))

    async def _start(self, sign: str, *words: str) -> int:
        record = self.home / "record"
        with record.open("w") as output:
            process = subprocess.Popen(
                [*self.become, *PYTHON, "-m", "bridge", *words],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                text=True,
            )
        self._started.append(process)
        await wait_until(lambda: self._is_up(record, sign, process), "its start")
        return process.pid

    def _is_up(self, record: Path, sign: str, process: subprocess.Popen[str]) -> bool:
        self.said = record.read_text()
        assert process.poll() is None, self.said
        if sign:
            return sign in self.said
        return self.paths.parent_token.exists() and (self.home / "server.sock").exists()

    def end(self) -> None:
        """End what was started, by pid."""
        for process in self._started:
            process.kill()
            process.wait()
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def another_person() -> Iterator[Person]:
    """Somebody with `OTHER_UID`; what they started ends with the block."""
    with _home() as home:
        os.chown(home, OTHER_UID, OTHER_UID)
        with _person(home, DROP) as person:
            yield person


@contextmanager
def ourselves() -> Iterator[Person]:
    """We, without what root may do beyond others."""
    with _home() as home, _person(home, [] if os.geteuid() else POWERLESS) as person:
        yield person


@contextmanager
def _home() -> Iterator[Path]:
    with TemporaryDirectory(prefix="agentworks-test-") as folder:
        Path(folder).chmod(0o711)
        home = Path(folder) / "home"
        home.mkdir(mode=0o711)
        yield home


@contextmanager
def _person(home: Path, become: list[str]) -> Iterator[Person]:
    person = Person(home, become)
    try:
        yield person
    finally:
        person.end()
