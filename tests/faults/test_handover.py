"""Fault row 35: one bridge ends while the next one begins."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bridge.clock import SystemClock
from bridge.paths import Paths
from tests.faults.capabilities import need_strace

pytestmark = [pytest.mark.crash, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
STARTER = ROOT / "tests" / "local" / "starter.py"
WITHIN_S = 20.0
# The old one stands for a second between closing its socket and removing its file.
SLOWLY = ["strace", "-qq", "-o", os.devnull, "-e", "trace=unlinkat"]
SLOWLY += ["-e", "inject=unlinkat:delay_enter=1000000"]


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    monkeypatch.chdir(tmp_path)
    made = Paths(config=tmp_path, state=tmp_path / "s", config_file=tmp_path / "c.json")
    made.prepare()
    yield made
    shutil.rmtree(made.state)


def begin(paths: Paths, *before: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*before, sys.executable, str(STARTER), str(paths.state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
    )
    step(process)
    return process


def step(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def answers(paths: Paths) -> bool:
    with closing(socket.socket(socket.AF_UNIX)) as client:
        return client.connect_ex(os.path.relpath(paths.socket)) == 0


def test_a_bridge_that_is_ending_never_removes_the_socket_of_the_next(
    paths: Paths,
) -> None:
    need_strace()
    clock = SystemClock()
    with begin(paths, *SLOWLY) as old:
        assert said(old).startswith("won")
        step(old)
        by = clock.running() + WITHIN_S
        while answers(paths):
            assert clock.running() < by
        assert paths.socket.exists()  # dead, and not yet removed

        with begin(paths) as early:
            assert said(early).startswith("already_running")
            early.communicate()
        old.communicate(timeout=WITHIN_S)
    assert not paths.socket.exists()

    with begin(paths) as new:
        assert said(new) == f"won {new.pid}"
        assert answers(paths)
        new.communicate("\n")


def test_of_starters_that_wait_for_an_ending_bridge_one_takes_over(
    paths: Paths,
) -> None:
    need_strace()
    with begin(paths, *SLOWLY) as old:
        assert said(old).startswith("won")
        step(old)
        losers = 0
        while True:
            with begin(paths) as next_one:
                if said(next_one).startswith("won"):
                    assert answers(paths)
                    step(next_one)
                    next_one.communicate()
                    break
                next_one.communicate()
                losers += 1
        old.communicate(timeout=WITHIN_S)

    assert old.returncode == 0
    assert losers > 0
    assert not paths.socket.exists()
