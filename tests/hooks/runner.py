"""Starts a hook client the way a host does, and says what came of it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import trio

STDIN = b'{"hook_event_name":"Stop"}\n'
SILENT = (0, b"", b"")


@dataclass(frozen=True)
class Ran:
    """Exit code, both streams, and how long it took."""

    exit: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def outcome(self) -> tuple[int, bytes, bytes]:
        """What a host would see."""
        return self.exit, self.stdout, self.stderr


async def run(
    *command: str | Path,
    stdin: bytes | int | IO[bytes] = STDIN,
    env: dict[str, str] | None = None,
) -> Ran:
    """Run one command to its end; the environment is empty unless given."""
    begun = trio.current_time()
    done = await trio.run_process(
        [str(word) for word in command],
        stdin=stdin,
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        env=env or {},
    )
    took = trio.current_time() - begun
    return Ran(done.returncode, done.stdout, done.stderr, took)


async def start(
    *command: str | Path,
    stdin: int | IO[bytes] = subprocess.PIPE,
    stdout: int | IO[bytes] = subprocess.PIPE,
) -> trio.Process:
    """Start one command with an empty environment and leave it running."""
    return await trio.lowlevel.open_process(
        [str(word) for word in command], stdin=stdin, stdout=stdout, env={}
    )


async def output(process: trio.Process) -> bytes:
    """All that a started command prints."""
    assert process.stdout is not None
    text = b""
    while chunk := await process.stdout.receive_some(1 << 16):
        text += chunk
    return text
