"""A pid that another program got, seen from inside a pid namespace of our own.

    python reused_pid.py FOLDER

Attaches a script, lets it end while no bridge runs, starts another program with
the very same pid, starts the bridge, and prints one JSON object of what it made of
that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import trio
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment
from bridge.core.ids import SessionId
from bridge.driver import restoring
from bridge.providers import process
from tests.core.examples import BOB
from tests.driver.desk import open_bridge

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


def started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


def started_as(pid: int) -> subprocess.Popen[bytes]:
    """Another program with this pid; here nobody else starts any."""
    LAST_PID.write_text(str(pid - 1))
    other = started()
    assert other.pid == pid, (other.pid, pid)
    return other


def wait_for_next_tick() -> None:
    """Until a program that starts now has another start time."""
    ticks_s = 1 / os.sysconf("SC_CLK_TCK")
    time.sleep(2 * ticks_s)


async def look(folder: Path) -> dict[str, object]:
    first = started()
    facts = process.facts_of(first.pid)
    assert facts is not None
    key = process.key_of(facts)
    record = replace(
        BOB, provider="script", process_key=key, session_id=SessionId(key.text())
    )
    async with open_bridge(folder) as bridge:
        await bridge.commit([SaveAttachment(record)])
    first.kill()
    first.wait()
    wait_for_next_tick()
    second = started_as(first.pid)
    now = process.facts_of(second.pid)
    assert now is not None
    async with open_bridge(folder) as bridge:
        await restoring.restore(bridge)
        (queue,) = bridge.roster
        new_key = process.key_of(now)
        found = bridge.roster.present("script", new_key.text(), new_key)
    second.kill()
    second.wait()
    return {
        "pid_was_reused": now.pid == key.pid,
        "state": queue.record.state.value,
        "name": queue.record.name,
        "is_the_new_program_attached": found is not None,
        "is_alive": process.is_alive(key),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(trio.run(look, Path(sys.argv[1]))))
