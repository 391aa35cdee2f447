"""Fault row 39: as many local programs as may come, and one more, at a real bridge."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.capabilities import need_descriptors
from tests.journeys.rig.computer import Computer
from tests.journeys.rig.puppets import Denied

CHILDREN = 1024
OTHERS = 64
CHILD, CALL = b"AW1 mcp script 0\n", b'AW1 call 16\n{"verb":"hello"}'
# What most systems give a program that does not ask for more.
USUAL = 1024
STARTED_WITH = """
import resource, runpy, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, ({usual}, hard))
sys.argv = ["bridge", "bridge", "run"]
runpy.run_module("bridge", run_name="__main__")
"""


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Enough of them for this many clients in one process."""
    need_descriptors(2 * CHILDREN)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * CHILDREN), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def knock(path: str, words: bytes) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.sendall(words)
    return client


@pytest.mark.slow
@pytest.mark.usefixtures("descriptors")
async def test_1024_children_and_64_calls_leave_room_for_none_and_harm_nobody(
    computer: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    computer.install()
    daemon = await computer.run(["-c", STARTED_WITH.format(usual=USUAL)], "bridge")
    await daemon.until(computer.answers, "an answer to hello")
    bob = await computer.settled("bob")
    monkeypatch.chdir(computer.paths.run)
    path = computer.paths.socket.name
    with ExitStack() as stack:
        for _ in range(CHILDREN):
            stack.enter_context(knock(path, CHILD))
        await daemon.until(lambda: is_refused(path), "a child too many")
        assert await bob.stop() == ""
        assert (await computer.person("hello"))["pid"] == daemon.pid

        calls = [stack.enter_context(knock(path, CALL)) for _ in range(OTHERS)]
        for call in calls:
            call.settimeout(20)
            assert call.recv(10).startswith(b"AW1 reply")
        with pytest.raises(Denied) as denied:
            await computer.person("hello")
        assert denied.value.code == "busy"
        assert await bob.stop() == ""  # a hook is not kept waiting by the crowd
        if os.access(f"/proc/{daemon.pid}/fd", os.R_OK):
            count = len(list(Path(f"/proc/{daemon.pid}/fd").iterdir()))
            assert count < CHILDREN + 2 * OTHERS + 100

    await daemon.until(lambda: not is_refused(path), "a place that is free again")
    assert (await computer.person("hello"))["pid"] == daemon.pid
    assert "accept_paused" not in daemon.said
    assert "Traceback" not in daemon.said


def is_refused(path: str) -> bool:
    """One more child: a place taken is an open connection."""
    with knock(path, CHILD) as client:
        client.settimeout(0.2)
        try:
            return client.recv(1) == b""
        except TimeoutError:
            return False
