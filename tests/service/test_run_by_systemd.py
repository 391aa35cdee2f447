"""The bridge really run by a systemd of its person: started, starved, refused.

Serial and slow: each test starts a systemd of its own.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.journeys.rig.waiting import until_some
from tests.service.rig.serviced import Serviced

pytestmark = [pytest.mark.crash, pytest.mark.slow]

# A watchdog that a test can wait for, and a restart at once.
IMPATIENT = "[Service]\nWatchdogSec=4\nRestartSec=100ms\n"


def status(pid: int, name: str) -> str:
    """One line of what the kernel says of a process; empty when it is gone."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return line.partition(":")[2].strip()
    return ""


async def until_another(house: Serviced, pid: int) -> int:
    """Wait until the service is up again in another process; its pid."""

    async def look() -> int:
        found = int(await house.systemd.show("MainPID"))
        is_up = await house.systemd.show("ActiveState") == "active"
        return found if is_up and found != pid else 0

    return await until_some(look, "a new process", 60)


async def test_systemd_starts_the_installed_bridge_and_hears_that_it_is_ready(
    house: Serviced,
) -> None:
    pid = await house.installed()

    assert await house.systemd.show("ActiveState") == "active"
    assert await house.systemd.show("UnitFileState") == "enabled"
    assert int(await house.systemd.show("MainPID")) == pid
    assert await house.systemd.show("StatusText") == "Serving; server: embedded."
    alice = await house.computer.settled("alice")
    bob = await house.computer.settled("bob")
    await alice.send("bob", "by systemd")
    assert "by systemd" in await bob.mail()


async def test_the_service_lives_under_the_limits_of_its_unit(house: Serviced) -> None:
    pid = await house.installed()

    assert (status(pid, "NoNewPrivs"), status(pid, "Seccomp")) == ("1", "2")
    assert status(pid, "Umask") == "0077"
    assert "Max core file size        0                    0" in (
        Path(f"/proc/{pid}/limits").read_text()
    )


async def test_a_stopped_bridge_starves_its_watchdog_and_loses_nothing(
    house: Serviced,
) -> None:
    pid = await house.installed(IMPATIENT)
    alice = await house.computer.settled("alice")
    bob = await house.computer.settled("bob")
    sent = await alice.send("bob", "said before the standstill")
    assert sent["status"] == "accepted"
    await house.computer.until_row("bob", pending=1)

    os.kill(pid, signal.SIGSTOP)
    await until_another(house, pid)

    assert int(await house.systemd.show("NRestarts")) >= 1
    await house.computer.until_row("bob", state="attached", pending=1)
    assert (await bob.mail()).count("said before the standstill") == 1
    assert await bob.stop() == ""


async def test_a_writer_that_cannot_write_starves_the_watchdog_and_loses_nothing(
    house: Serviced,
) -> None:
    pid = await house.installed(IMPATIENT)
    alice = await house.computer.settled("alice")
    bob = await house.computer.settled("bob")
    await alice.send("bob", "said before the lock")
    await house.computer.until_row("bob", pending=1)

    async def is_restarted() -> bool:
        return await house.systemd.show("NRestarts") != "0"

    with closing(sqlite3.connect(house.computer.paths.journal)) as other:
        other.execute("BEGIN IMMEDIATE")
        await until_some(is_restarted, "a restart", 30)
    await until_another(house, pid)

    await house.computer.until_row("bob", state="attached", pending=1)
    assert (await bob.mail()).count("said before the lock") == 1
    assert await bob.stop() == ""


async def test_a_killed_bridge_is_started_again_and_loses_nothing(
    house: Serviced,
) -> None:
    pid = await house.installed(IMPATIENT)
    alice = await house.computer.settled("alice")
    bob = await house.computer.settled("bob")
    await alice.send("bob", "said before the crash")
    await house.computer.until_row("bob", pending=1)

    os.kill(pid, signal.SIGKILL)
    await until_another(house, pid)

    await house.computer.until_row("bob", state="attached", pending=1)
    assert (await bob.mail()).count("said before the crash") == 1


async def test_what_only_a_person_can_mend_is_not_started_again_and_is_seen(
    house: Serviced,
) -> None:
    await house.installed()
    await house.type("bridge", "stop")
    journal = house.computer.paths.journal
    good = journal.read_bytes()
    journal.write_bytes(b"no database at all, but long enough to be looked at" * 99)

    start = await house.type("bridge", "start")
    await house.systemd.until("ActiveState", "failed")

    assert await house.systemd.show("NRestarts") == "0"
    assert await house.systemd.show("ExecMainStatus") == "78"
    assert start.exit == 78
    for words in (("bridge", "status"), ("agents",)):
        seen = await house.type(*words)
        assert seen.exit == 78
        assert "its start at" in seen.err
        assert str(journal) in seen.err.replace("\\\\", "\\")

    journal.write_bytes(good)
    assert (await house.type("bridge", "start")).exit == 0
    status = await house.type("bridge", "status")
    assert (status.exit, "refused" in status.out) == (0, False)
    assert not house.computer.paths.refused.exists()


async def test_a_service_beside_a_bridge_that_runs_is_not_started_again_and_again(
    house: Serviced,
) -> None:
    await house.installed()
    await house.type("bridge", "stop")
    await house.computer.start_bridge()

    await house.systemd.tell("start", "agentworks-bridge")
    await house.systemd.until("ActiveState", "failed")

    assert await house.systemd.show("NRestarts") == "0"
    seen = await house.type("bridge", "status")
    assert seen.exit == 0
    assert "does not run this bridge" in seen.out
    assert "was refused: A bridge is already running" in seen.out
    # The person hands it over.
    assert (await house.type("bridge", "restart", "--json")).document["service"][
        "runs_it"
    ]


async def test_stop_and_start_keep_who_was_attached_and_approve_nobody_else(
    house: Serviced,
) -> None:
    await house.installed()
    alice = await house.computer.settled("alice")
    bob = await house.computer.settled("bob")
    await alice.send("bob", "kept while stopped")
    await house.computer.until_row("bob", pending=1)

    assert (await house.type("bridge", "stop")).exit == 0
    assert await house.systemd.show("ActiveState") == "inactive"
    assert await bob.stop() == ""
    await alice.process.kill()
    stranger = await house.computer.agent()
    assert (await house.type("bridge", "start")).exit == 0

    await house.computer.until_row("alice", state="offline")
    await house.computer.until_row("bob", state="attached")
    assert await stranger.stop() == ""
    assert "kept while stopped" in await bob.mail()


async def test_a_stop_ends_also_a_service_that_would_just_be_started_again(
    house: Serviced,
) -> None:
    pid = await house.installed("[Service]\nRestartSec=30\n")
    os.kill(pid, signal.SIGKILL)
    await house.systemd.until("SubState", "auto-restart")
    seen = await house.type("bridge", "status")
    assert (seen.exit, "has it as a service that failed" in seen.err) == (75, True)

    assert (await house.type("bridge", "stop")).out == "The bridge is not running.\n"

    assert await house.systemd.show("ActiveState") == "inactive"


# ---- install and uninstall ---------------------------------------------------------


async def test_an_installation_hands_over_the_bridge_that_runs(house: Serviced) -> None:
    before = (await house.type("up", "--json")).document
    assert before["service"]["kind"] == "none"

    pid = await house.installed()
    again = await house.type("up", "--json")

    assert pid != before["pid"]

    async def is_gone() -> bool:
        return status(before["pid"], "State")[:1] in ("", "Z")

    await until_some(is_gone, "the end of the bridge before")
    assert again.document["pid"] == pid
    assert (await house.type("bridge", "install", "--json")).document["pid"] == pid


async def test_nothing_is_written_without_a_yes(house: Serviced) -> None:
    done = await house.type("bridge", "install")

    assert done.exit == 2
    assert "ExecStart=" in done.err
    assert not house.unit.exists()


async def test_an_agent_may_not_install_or_uninstall(house: Serviced) -> None:
    mark = {"CODEX_THREAD_ID": "0199f0a0-0000-7000-8000-000000000001"}

    refused = await house.type("bridge", "install", "--yes", **mark)
    await house.installed()
    also = await house.type("bridge", "uninstall", "--yes", **mark)

    assert (refused.exit, also.exit) == (3, 3)
    assert house.unit.exists()
    assert await house.systemd.show("ActiveState") == "active"


async def test_another_state_folders_service_is_left_alone(
    house: Serviced, tmp_path: Path
) -> None:
    pid = await house.installed()
    other = {"AGENTWORKS_STATE": str(tmp_path / "other")}

    conflict = await house.type("bridge", "install", "--yes", **other)
    stop = await house.type("bridge", "stop", **other)
    removed = await house.type("bridge", "uninstall", "--yes", **other)

    assert conflict.exit == 4
    assert (stop.exit, removed.exit) == (0, 0)
    assert int(await house.systemd.show("MainPID")) == pid
    assert house.unit.exists()


async def test_a_unit_of_somebody_else_is_left_alone(house: Serviced) -> None:
    house.unit.parent.mkdir(parents=True)
    house.unit.write_text("[Service]\nExecStart=/usr/bin/true\n")

    done = await house.type("bridge", "install", "--yes")

    assert done.exit == 4
    assert "true" in house.unit.read_text()


async def test_a_systemd_that_reads_other_folders_is_given_nothing(
    house: Serviced, tmp_path: Path
) -> None:
    done = await house.type(
        "bridge", "install", "--yes", XDG_CONFIG_HOME=str(tmp_path / "config")
    )

    assert done.exit == 1
    assert "does not read" in done.err
    assert not list((tmp_path / "config").glob("systemd/user/*"))


async def test_an_uninstalled_bridge_leaves_no_service_socket_lock_or_login(
    house: Serviced,
) -> None:
    await house.installed()
    alice = await house.computer.settled("alice")
    bob = await house.computer.settled("bob")
    await alice.send("bob", "kept in the journal")
    await house.computer.until_row("bob", pending=1)
    paths = house.computer.paths

    done = await house.type("bridge", "uninstall", "--yes", "--json")

    assert done.exit == 0, done.err
    assert not house.unit.exists()
    assert await house.systemd.show("LoadState") == "not-found"
    for place in (paths.run, paths.leases, paths.parent_token):
        assert not place.exists()
    left = [each for each in paths.state.rglob("*") if each.is_socket()]
    assert left == []
    assert paths.journal.exists()
    assert set(done.document["removed"]) == {
        str(house.unit), str(paths.run), str(paths.leases), str(paths.parent_token)
    }  # fmt: skip
    # What is kept is of use: the next bridge knows the names and the mail.
    assert (await house.type("up")).exit == 0
    await house.computer.until_row("bob", state="offline")
    await house.computer.attach(bob, "bob")
    assert (await bob.mail()).count("kept in the journal") == 1


async def test_a_purge_counts_what_it_loses_and_leaves_nothing(house: Serviced) -> None:
    await house.installed()
    alice = await house.computer.settled("alice")
    await house.computer.settled("bob")
    await alice.send("bob", "never read")
    await house.computer.until_row("bob", pending=1)

    asked = await house.type("bridge", "uninstall", "--purge")
    assert asked.exit == 2
    assert "1 message that no agent has acknowledged, and 0 never sent" in asked.err
    assert "taken out of its .codex/config.toml" in asked.err
    assert await house.systemd.show("ActiveState") == "active"

    assert (await house.type("bridge", "uninstall", "--purge", "--yes")).exit == 0
    assert not house.computer.state.exists()


async def test_a_program_that_the_service_starts_cannot_speak_for_it(
    house: Serviced, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    compiler = programs / "cc"
    compiler.write_text(f'#!/bin/sh\nenv > "{programs}/seen"\nexit 1\n')
    compiler.chmod(0o755)
    (house.computer.paths.bin / "made-from").unlink(missing_ok=True)

    done = await house.type(
        "bridge", "install", "--yes", PATH=f"{programs}:/usr/bin:/bin"
    )

    assert done.exit == 0, done.err
    seen = (programs / "seen").read_text()
    assert "PATH=" in seen
    assert "NOTIFY_SOCKET" not in seen
    assert "WATCHDOG" not in seen
