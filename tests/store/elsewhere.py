"""Reading and writing a journal's files from another process.

Closing any descriptor of an open SQLite file drops this process's locks on it,
so a test that looks at the bytes of an open journal looks from elsewhere.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_READ = """
import sys
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        sys.stdout.buffer.write(file.read())
"""

_WRITE = """
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    file.write(sys.stdin.buffer.read())
"""

CONFIRM_AND_DIE = """
import os, signal, sys, trio
from pathlib import Path
from bridge.clock import SystemClock
from bridge.core.effects import SaveAttachment
from bridge.store.journal import Journal
from tests.store.examples import attachment

async def main():
    journal = await Journal.open(Path(sys.argv[1]), SystemClock())
    await journal.commit([SaveAttachment(attachment())])
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[2] == "closed":
        await journal.close()

trio.run(main)
"""


def read_bytes(*paths: Path) -> bytes:
    """The files' bytes, one after the other."""
    names = [str(path) for path in paths]
    read = subprocess.run(
        [sys.executable, "-c", _READ, *names], capture_output=True, check=True
    )
    return read.stdout


def write_bytes(path: Path, offset: int, content: bytes) -> None:
    """Overwrite part of a file."""
    subprocess.run(
        [sys.executable, "-c", _WRITE, str(path), str(offset)],
        input=content,
        check=True,
    )


def confirm_and_die(path: Path, way: str) -> int:
    """Save one attachment elsewhere; `way` is killed, closed or returned."""
    ended = subprocess.run(
        [sys.executable, "-c", CONFIRM_AND_DIE, str(path), way], check=False
    )
    return ended.returncode
