"""Programs that die, change or give their pid to others, around a real bridge."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import trio

from tests.faults.capabilities import need_pid_namespaces
from tests.journeys.rig.computer import Agent, Computer

ROOT = Path(__file__).resolve().parents[2]
SILENCE_S = 0.3
TRIES = 9


def wait_stopped(pid: int) -> None:
    """Until the kernel says that a signal stopped it."""
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


# ---- a bridge that stands still (row 76) ---------------------------------------------


async def test_hooks_of_a_stopped_bridge_are_silent_after_300_ms_and_mail_comes_later(
    computer: Computer,
) -> None:
    bridge = await computer.start_bridge()
    alice, bob = await computer.settled("alice"), await computer.settled("bob")
    await alice.send("bob", "are you there?")
    await computer.until_row("bob", pending=1)
    os.kill(bridge.pid, signal.SIGSTOP)
    await trio.to_thread.run_sync(wait_stopped, bridge.pid)

    took: list[float] = []
    for _ in range(TRIES):
        began = trio.current_time()
        assert await bob.stop() == ""
        took.append(trio.current_time() - began)
    os.kill(bridge.pid, signal.SIGCONT)

    # Other work on the computer may slow a single one down, not most of them.
    assert SILENCE_S <= statistics.median(took) < 3 * SILENCE_S
    assert "are you there?" in await bob.mail()
    assert await bob.stop() == ""


async def test_a_hook_without_a_bridge_is_silent_at_once(computer: Computer) -> None:
    bridge = await computer.start_bridge()
    bob = await computer.settled("bob")
    await bridge.kill()

    assert await bob.stop() == ""


# ---- a program that dies (row 73) ----------------------------------------------------


async def settled_pair(computer: Computer) -> tuple[Agent, Agent]:
    await computer.start_bridge()
    return await computer.settled("alice"), await computer.settled("bob")


async def test_a_program_that_dies_with_an_offer_out_keeps_its_name_and_sees_it_once(
    computer: Computer,
) -> None:
    alice, bob = await settled_pair(computer)
    await alice.send("bob", "read me once")
    await computer.until_row("bob", pending=1)
    assert "read me once" in await bob.hold()
    await bob.process.kill()

    await computer.until_row("bob", state="offline", pending=0, unacknowledged=1)

    again = await computer.agent()
    await computer.attach(again, "bob")
    await alice.send("bob", "and then this")
    await computer.until_row("bob", state="attached", pending=1)
    assert "and then this" in (printed := await again.mail())
    assert "read me once" not in printed
    page = await again.verb("read")
    assert [each["message"] for each in page["messages"]] == [
        "read me once",
        "and then this",
    ]


# ---- a pid that another program got (row 71) -----------------------------------------


def test_a_reused_pid_is_offline_and_its_new_program_gets_nothing(
    tmp_path: Path,
) -> None:
    need_pid_namespaces()
    program = Path(__file__).with_name("reused_pid.py")
    apart = ("unshare", "--pid", "--fork", "--mount-proc")
    done = subprocess.run(
        [*apart, sys.executable, str(program), str(tmp_path)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "pid_was_reused": True,
        "state": "offline",
        "name": "bob",
        "is_the_new_program_attached": False,
        "is_alive": False,
    }
