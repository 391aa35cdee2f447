"""What a fault test needs of the computer it runs on, in one place.

Promises that a missing capability skips a test with its reason on a developer's
computer and fails it with CI=true, where none may be missing.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from functools import cache

import pytest

OTHER_UID = 65534  # nobody, on every system that we know
_ANSWER_S = 10.0


def need_strace() -> None:
    """An strace that may attach to a process of ours."""
    _need(_why_no_strace())


def need_root() -> None:
    """The rights of root: to mount, or to give a file away."""
    _need("" if os.geteuid() == 0 else "only root can do this")


def need_other_uid() -> None:
    """Root and setpriv: a child of ours may run as `OTHER_UID`."""
    _need(_why_no_other_uid())


def need_namespaces() -> None:
    """`unshare -m`: mounts of our own, which nobody else sees."""
    _need(_why_no_namespace("--mount"))


def need_pid_namespaces() -> None:
    """`unshare -pf --mount-proc`: a process tree of our own."""
    _need(_why_no_namespace("--pid", "--fork", "--mount-proc"))


def need_user_systemd() -> None:
    """Root, mounts and control groups for a systemd of our own, and systemctl."""
    _need(_why_no_user_systemd())


def need_descriptors(count: int) -> None:
    """So many open files in one process."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    is_enough = hard == resource.RLIM_INFINITY or hard >= count
    _need("" if is_enough else f"this computer allows {hard} open files")


def need_program(name: str) -> None:
    """A program on PATH, such as faketime or systemd-analyze."""
    _need("" if shutil.which(name) else f"{name} is not installed")


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


@cache
def _why_no_other_uid() -> str:
    if os.geteuid() != 0:
        return "only root can start a process of another user"
    if shutil.which("setpriv") is None:
        return "setpriv is not installed"
    drop = ["setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}", "--clear-groups"]
    reading = [sys.executable, "-c", f"open({__file__!r})"]
    tried = subprocess.run([*drop, *reading], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "another user may not read our programs"


def _why_no_namespace(*kinds: str) -> str:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return "namespaces are for Linux"
    tried = subprocess.run(
        ["unshare", *kinds, "true"], capture_output=True, check=False, text=True
    )
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.strip()}"


def _why_no_user_systemd() -> str:
    if os.geteuid() != 0:
        return "only root can start a systemd apart from the computer's own"
    if shutil.which("systemctl") is None or not os.path.exists("/lib/systemd/systemd"):
        return "systemd is not installed"
    groups = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
    if not any(os.access(f"{each}/cgroup.procs", os.W_OK) for each in groups):
        return "there is no control group to divide"
    return _why_no_namespace("--mount")
