"""What a real daemon says to the manager that started it (fault row 84)."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.journeys.rig.computer import Computer
from tests.journeys.rig.running import Running
from tests.real_clients.rig.waiting import wait_until
from tests.service.rig.manager import Manager
from tests.service.rig.manager import manager as listening

FED = b"WATCHDOG=1"
READY = b"READY=1\nSTATUS=Serving; server: embedded."


@pytest.fixture
def manager(computer: Computer) -> Iterator[Manager]:
    """One that wants a word every 0.9 s from whatever starts on the computer."""
    with listening() as hearing:
        computer.environment["NOTIFY_SOCKET"] = hearing.address
        computer.environment["WATCHDOG_USEC"] = "900000"
        yield hearing


async def started(computer: Computer, manager: Manager) -> Running:
    """A daemon that has said that it is ready."""
    daemon = await computer.launch_bridge()
    heard: list[bytes] = []

    def is_ready() -> bool:
        heard.extend(manager.words())
        return READY in heard

    await daemon.until(is_ready, "READY=1")
    return daemon


async def test_ready_is_said_when_the_door_answers_and_stopping_at_the_end(
    computer: Computer, manager: Manager
) -> None:
    daemon = await started(computer, manager)
    assert computer.answers()

    assert await daemon.stop() == 0

    assert manager.words()[-1].startswith(b"STOPPING=1\n")


async def test_a_daemon_whose_journal_is_locked_says_no_word_until_it_is_free(
    computer: Computer, manager: Manager
) -> None:
    daemon = await started(computer, manager)
    await wait_until(lambda: FED in manager.words(), "a word")

    with closing(sqlite3.connect(computer.paths.journal)) as other:
        other.execute("BEGIN IMMEDIATE")
        await daemon.until(lambda: "watchdog_not_fed" in daemon.said, "a lost word")
        manager.words()
        lost = daemon.said.count("watchdog_not_fed")
        await daemon.until(
            lambda: daemon.said.count("watchdog_not_fed") > lost, "another lost word"
        )
        assert manager.words() == []

    await wait_until(lambda: FED in manager.words(), "a word again")
    assert computer.answers()


async def test_a_daemon_that_stands_still_says_no_word(
    computer: Computer, manager: Manager
) -> None:
    daemon = await started(computer, manager)
    await wait_until(lambda: FED in manager.words(), "a word")

    os.kill(daemon.pid, signal.SIGSTOP)
    await wait_until(lambda: _is_stopped(daemon.pid), "the standstill")
    manager.words()
    with pytest.raises(AssertionError, match="never happened"):
        await wait_until(manager.words, "a word", 1.5)

    os.kill(daemon.pid, signal.SIGCONT)
    await wait_until(lambda: FED in manager.words(), "a word again")


def _is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


# ---- a start that only a person can mend -----------------------------------------


@pytest.mark.parametrize(("supervisor", "code"), [("systemd", 78), ("launchd", 0)])
async def test_a_refused_start_ends_as_its_supervisor_needs_and_is_seen(
    computer: Computer, supervisor: str, code: int
) -> None:
    computer.paths.prepare()
    computer.paths.journal.write_bytes(b"no database, but long enough to look at" * 99)

    daemon = await computer.launch_bridge(words=("--supervised-by", supervisor))

    assert await daemon.end() == code
    assert "Error: " in daemon.said
    assert b"journal" in computer.paths.refused.read_bytes()
    assert computer.paths.refused.stat().st_mode & 0o777 == 0o600


async def test_a_second_bridge_under_a_supervisor_does_not_come_back(
    computer: Computer,
) -> None:
    await computer.start_bridge()

    second = await computer.launch_bridge(words=("--supervised-by", "systemd"))

    assert await second.end() == 78
    assert b"already_running" in computer.paths.refused.read_bytes()
    assert computer.answers()


async def test_a_good_start_takes_the_reason_away(computer: Computer) -> None:
    computer.paths.prepare()
    computer.paths.refused.write_text('{"at": 1, "code": "x", "message": "y"}')
    computer.paths.refused.chmod(0o600)

    await computer.start_bridge()

    assert not computer.paths.refused.exists()
