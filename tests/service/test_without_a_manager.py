"""The same commands where no service manager answers: a background process."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator

import pytest

from bridge.service.plan import Plan
from bridge.service.systemd import Systemd
from tests.journeys.rig.computer import Computer
from tests.journeys.rig.puppets import puppet
from tests.service.rig.serviced import TERMINAL, Typed


class Terminal:
    """Where the person types; a bridge that is left running is stopped."""

    def __init__(self, do: object) -> None:
        self._do = do

    async def type(self, *words: str, **variables: str) -> Typed:
        assert callable(self._do)
        done = await self._do("command", words=list(words), **variables)
        return Typed(**done)


@pytest.fixture
async def terminal(computer: Computer) -> AsyncIterator[Terminal]:
    computer.install()
    # Not the developer's own systemd either.
    computer.environment["XDG_RUNTIME_DIR"] = str(computer.home)
    async with puppet(computer.environment, TERMINAL) as process:
        made = Terminal(process.do)
        yield made
        await made.type("bridge", "stop")


async def test_an_installation_starts_a_background_bridge_and_says_so(
    computer: Computer, terminal: Terminal
) -> None:
    done = await terminal.type("bridge", "install", "--yes", "--json")

    assert done.exit == 0, done.err
    assert "nothing was installed" in done.err
    assert done.document["service"]["kind"] == "none"
    assert computer.answers()
    assert not list(computer.home.glob(".config/systemd/**/*"))


async def test_every_command_names_who_runs_the_bridge(terminal: Terminal) -> None:
    up = await terminal.type("up")
    status = await terminal.type("bridge", "status")

    assert "service: none: a background process" in up.out
    assert "service  none: a background process, until it is stopped" in status.out


async def test_a_unit_whose_manager_does_not_answer_leaves_start_and_stop_working(
    computer: Computer, terminal: Terminal
) -> None:
    unit = computer.home / ".config/systemd/user/agentworks-bridge.service"
    unit.parent.mkdir(parents=True)
    state = str(computer.state).replace("\\", "\\\\").replace('"', '\\"')
    state = state.replace("%", "%%")
    unit.write_text(
        f'[Service]\nExecStart="/bin/true"\nEnvironment="AGENTWORKS_STATE={state}"\n'
    )

    started = await terminal.type("bridge", "start", "--json")
    service = started.document["service"]
    assert (started.exit, service["is_installed"], service["runs_it"]) == (
        0,
        True,
        False,
    )
    assert (await terminal.type("bridge", "stop")).exit == 0
    assert (await terminal.type("bridge", "uninstall", "--yes")).exit == 0
    assert not unit.exists()


async def test_an_uninstalled_background_bridge_leaves_no_socket_lock_or_login(
    computer: Computer, terminal: Terminal
) -> None:
    await terminal.type("up")
    await computer.settled("alice")
    paths = computer.paths

    done = await terminal.type("bridge", "uninstall", "--yes")

    assert done.exit == 0, done.err
    assert f"The journal is kept: {paths.journal}" in done.out.replace("\\\\", "\\")
    assert paths.journal.exists()
    assert not any(
        place.exists() for place in (paths.run, paths.leases, paths.parent_token)
    )
    again = await terminal.type("bridge", "uninstall", "--yes", "--json")
    assert (again.exit, again.document["removed"]) == (0, [])


async def test_a_journal_that_never_was_is_not_called_kept(
    computer: Computer, terminal: Terminal
) -> None:
    done = await terminal.type("bridge", "uninstall", "--yes")

    assert done.exit == 0, done.err
    assert "is kept" not in done.out + done.err


async def test_a_purge_promises_to_remove_what_is_the_bridges_alone(
    computer: Computer, terminal: Terminal
) -> None:
    await terminal.type("up")
    own = computer.state / "own.txt"
    own.write_text("not the bridge's")

    done = await terminal.type("bridge", "uninstall", "--purge", "--yes")

    assert done.exit == 0, done.err
    assert "all that the bridge keeps in" in done.err
    assert list(computer.state.iterdir()) == [own]


async def test_nothing_is_stopped_or_removed_without_a_yes(
    computer: Computer, terminal: Terminal
) -> None:
    await terminal.type("up")

    done = await terminal.type("bridge", "uninstall", "--purge")

    assert done.exit == 2
    assert "No message waits there." in done.err
    assert computer.answers()


@pytest.mark.parametrize("command", ["install", "uninstall"])
async def test_an_agent_changes_nothing_also_while_no_bridge_runs(
    computer: Computer, terminal: Terminal, command: str
) -> None:
    before = sorted(computer.state.rglob("*"))

    done = await terminal.type("bridge", command, "--yes", CLAUDECODE="1")

    assert done.exit == 3
    assert "was not done" in done.err
    assert sorted(computer.state.rglob("*")) == before


async def test_the_log_of_a_background_bridge_is_its_file(
    computer: Computer, terminal: Terminal
) -> None:
    await terminal.type("up")

    done = await terminal.type("bridge", "logs", "--lines", "1", "--json")

    assert done.document["source"] == str(computer.paths.log / "bridge.log")
    (line,) = done.document["lines"]
    assert json.loads(line)["event"] == "serving"


async def test_without_a_bridge_there_is_no_log_to_show(terminal: Terminal) -> None:
    done = await terminal.type("bridge", "logs")

    assert (done.exit, done.out) == (78, "")
    assert done.err.startswith("Error: There is no folder")


SYSTEMCTL = """#!/bin/sh
case "$*" in
*" show "*) echo "FragmentPath=$HOME/.config/systemd/user/agentworks-bridge.service"
    echo ActiveState=inactive; echo SubState=dead; echo MainPID=0 ;;
esac
"""


async def test_the_log_is_of_the_bridge_that_runs_and_not_of_an_idle_service(
    computer: Computer, terminal: Terminal
) -> None:
    await terminal.type("up")
    unit = computer.home / ".config/systemd/user/agentworks-bridge.service"
    unit.parent.mkdir(parents=True)
    plan = Plan(("/bin/true",), {"AGENTWORKS_STATE": str(computer.state)})
    unit.write_text(Systemd().text(plan, computer.paths))
    programs = computer.home / "programs"
    programs.mkdir()
    for name in ("systemctl", "journalctl"):
        (programs / name).write_text(SYSTEMCTL)
        (programs / name).chmod(0o700)
    path = f"{programs}:{os.environ['PATH']}"

    status = await terminal.type("bridge", "status", "--json", PATH=path)
    done = await terminal.type("bridge", "logs", "--json", PATH=path)

    assert status.document["service"]["is_installed"]
    assert not status.document["service"]["runs_it"]
    assert done.document["source"] == str(computer.paths.log / "bridge.log")
