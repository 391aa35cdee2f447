"""A systemd for one user, apart from the computer's own, and what it runs.

Owns its process, its runtime folder and its control group. Promises that nobody
outside of it sees a difference, and that everything it started has ended with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trio

from bridge.service.systemd import UNIT
from tests.journeys.rig.waiting import until_some

BEGIN = Path(__file__).with_name("begin_systemd.sh")
END_S = 10.0
_GROUPS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup")


class UserSystemd:
    """One running systemd; `environment` is that of its user's session."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment

    async def show(self, name: str) -> str:
        """One property of the bridge's unit."""
        return (await self.tell("show", UNIT, f"--property={name}", "--value")).strip()

    async def until(self, name: str, value: str) -> None:
        """Wait until the unit has this property."""

        async def look() -> bool:
            return await self.show(name) == value

        await until_some(look, f"{name}={value}")

    async def change(self, lines: str) -> None:
        """Other settings for the unit, as a person would override them."""
        config = Path(self.environment["HOME"]) / ".config/systemd/user"
        folder = config / f"{UNIT}.d"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "test.conf").write_text(lines)
        await self.tell("daemon-reload")

    async def tell(self, *words: str) -> str:
        """What systemctl printed."""
        done = await trio.run_process(
            ["systemctl", "--user", *words],
            env=dict(self.environment),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
        return bytes(done.stdout).decode()

    async def is_there(self) -> bool:
        """True when it answers."""
        return bool(await self.tell("show-environment"))


@asynccontextmanager
async def user_systemd(environment: Mapping[str, str]) -> AsyncIterator[UserSystemd]:
    """A systemd for the user with this HOME."""
    # In /tmp itself: the paths of its sockets may not be long.
    folder = tempfile.mkdtemp(prefix="aw-systemd-", dir="/tmp")
    name = Path(folder).name
    ours = {**environment, "XDG_RUNTIME_DIR": folder}
    command = ["unshare", "--mount", str(BEGIN), name]
    given = {key: ours[key] for key in ("HOME", "PATH", "XDG_RUNTIME_DIR", "LANG")}
    with (Path(environment["HOME"]) / "systemd.log").open("wb") as log:
        process = await trio.lowlevel.open_process(
            command, env=given, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        systemd = UserSystemd(ours)
        await until_some(systemd.is_there, "an answer of systemd")
        yield systemd
    finally:
        with trio.CancelScope(shield=True):
            await _end(process, name)
        shutil.rmtree(folder, ignore_errors=True)


async def _end(process: trio.Process, name: str) -> None:
    # As a logout: it stops what it runs, and ends.
    process.send_signal(signal.SIGTERM)
    with trio.move_on_after(END_S):
        await process.wait()
    for pid in _members(name):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await process.wait()
    await until_some(lambda: _is_empty(name), f"an empty {name}")
    for tree in _GROUPS:
        for group in sorted(Path(tree, name).glob("**/"), reverse=True):
            group.rmdir()


async def _is_empty(name: str) -> bool:
    return not _members(name)


def _members(name: str) -> set[int]:
    """Every process in the control groups that are this systemd's alone."""
    return {
        int(line)
        for tree in _GROUPS
        for file in Path(tree, name).glob("**/cgroup.procs")
        for line in file.read_text().split()
    }
