"""What a fault test needs of the computer it runs on, in one place.

Promises that a missing capability skips a test with its reason on a developer's
computer and fails it with CI=true, where none may be missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

_ANSWER_S = 10.0


def need_strace() -> None:
    """An strace that may attach to a process of ours."""
    _need(_why_no_strace())


def _need(missing: str) -> None:
    if not missing:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must run this: {missing}")
    pytest.skip(missing)


def _why_no_strace() -> str:
    if sys.platform != "linux":
        return "strace is for Linux"
    if shutil.which("strace") is None:
        return "strace is not installed"
    piped, silent = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(["cat"], stdin=piped, stdout=silent) as traced:
        command = ["strace", "-p", str(traced.pid), "-e", "inject=read:signal=SIGKILL"]
        with subprocess.Popen(command, stderr=piped, text=True) as strace:
            assert strace.stderr is not None
            is_attached = "attached" in strace.stderr.readline()
            traced.communicate(b"end\n", timeout=_ANSWER_S)
    return "" if is_attached else "strace may not attach to another process"
