"""Disks of a test's own: small, full, or read-only, and seen by nobody else.

A test that mounts runs again in a child with a mount namespace of its own, where
it and every program that it starts see the same mounts; all end with the child.
"""

from __future__ import annotations

import errno
import faulthandler
import os
import shutil
import subprocess
import sys
from io import FileIO
from pathlib import Path

import pytest

from tests.faults.capabilities import need_namespaces, need_root
from tests.faults.matrix import ROOT

INSIDE = "AGENTWORKS_TEST_HAS_OWN_MOUNTS"
_TEST_S = 300
_BLOCK = b"\0" * 4096
# A test's hard links cannot leave the big disk.
_BIG = ("bin",)


def is_done_elsewhere(request: pytest.FixtureRequest) -> bool:
    """True when a child with mounts of its own has run this test; False in it."""
    if INSIDE in os.environ:
        return False
    need_root()
    need_namespaces()
    faulthandler.cancel_dump_traceback_later()  # a minute is no sign of a hang here
    words = ["-q", "-p", "no:cacheprovider", request.node.nodeid]
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env={**os.environ, INSIDE: "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return True


class SmallDisk:
    """An existing state folder is now on a disk of `size` bytes.

    Without `is_servers` the embedded server's database is not on it.
    """

    def __init__(self, state: Path, size: int, *, is_servers: bool = True) -> None:
        self._big = _BIG if is_servers else (*_BIG, "server")
        self._state = state
        self._filling = state / "filling"
        # Beside the scratch computer, in which nobody may find a token twice.
        computer = state.parent
        big = state.rename(computer.with_name(f"{computer.name}-big"))
        state.mkdir(mode=0o700)
        _mount("-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(state))
        for name in self._big:
            for folder in (big / name, state / name):
                folder.mkdir(mode=0o700, exist_ok=True)
            _mount("--bind", str(big / name), str(state / name))

    def fill(self, leave: int = 0) -> None:
        """Until nothing more fits, or only `leave` bytes."""
        with self._filling.open("ab", buffering=0) as file:
            while _has_room(file):
                pass
            file.truncate(file.tell() - leave)

    def make_room(self) -> None:
        """The reverse of fill."""
        self._filling.unlink(missing_ok=True)

    def forget(self) -> None:
        """All that the small disk holds is gone; its mounts stay."""
        for path in self._state.iterdir():
            if path.name not in self._big:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def make_read_only(self) -> None:
        """Nothing may be written; not while a program writes."""
        _mount("-o", "remount,ro", str(self._state))

    def make_writable(self) -> None:
        """The reverse of make_read_only."""
        _mount("-o", "remount,rw", str(self._state))


def _has_room(file: FileIO) -> bool:
    try:
        return bool(file.write(_BLOCK))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)
