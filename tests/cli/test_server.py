"""`server run` with a real process: what it says, and what ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bridge.paths import Paths

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def serving(home: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bridge", "server", "run", *words],
        cwd=ROOT,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a server listens; a server alone takes 103 bytes at most."""
    with TemporaryDirectory(prefix="aw-") as folder:
        yield Path(folder) / "alone.sock"


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_where_it_answers_and_how_it_is_used(
    home: Path, paths: Paths, place: Path, sign: signal.Signals
) -> None:
    with serving(home, "--socket", str(place)) as process:
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        assert first == (
            f"The message server answers at unix://{place} until it is stopped.\n"
        )
        assert f"bridge restart --server unix://{place}" in second
        assert place.is_socket()
        assert paths.parent_token.exists()

        process.send_signal(sign)
        assert process.wait(timeout=30) == 0
    assert not place.exists()


def test_a_second_server_of_a_state_folder_says_what_is_in_its_way(
    home: Path, place: Path
) -> None:
    with serving(home, "--socket", str(place), "--json") as first:
        assert first.stdout is not None
        said = "".join(first.stdout.readline() for _ in range(4))
        assert json.loads(said) == {"server": f"unix://{place}", "pid": first.pid}

        with serving(home, "--socket", str(place)) as again:
            _, why = again.communicate(timeout=30)
            assert again.returncode == 75
            assert "Something is there already" in why
        with serving(home, "--socket", f"{place}2") as other:
            _, why = other.communicate(timeout=30)
            assert other.returncode == 75
            assert "Another process serves" in why
            assert "bridge stop" in why
