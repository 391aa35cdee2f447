"""The rig itself, without any vendor's program."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.real_clients.conftest import must_have_clients
from tests.real_clients.rig.computer import Computer, computer_in
from tests.real_clients.rig.processes import process_row
from tests.real_clients.rig.waiting import NeverHappened, wait_until


@pytest.fixture(autouse=True)
def _needs_programs() -> None:
    if shutil.which("tmux") is None or shutil.which("setsid") is None:
        pytest.skip("the rig needs tmux and setsid")


async def test_a_command_runs_apart_from_us_and_with_a_clean_environment(
    computer: Computer,
) -> None:
    done = await computer.run(
        "sh", "-c", "echo $PPID; env; exit 3", extra={"ONLY": "this"}
    )

    parent, *variables = done.out.splitlines()
    above = process_row(int(parent))
    names = {line.partition("=")[0] for line in variables}
    assert done.code == 3
    assert above is None or above.parent_pid != os.getpid()
    assert names <= {*computer.environment, "ONLY", "PWD", "OLDPWD", "SHLVL", "_"}
    assert f"HOME={computer.home}" in variables


async def test_a_terminals_program_has_no_parent_but_tmux(computer: Computer) -> None:
    pane = computer.open_terminal("plain", ["sleep", "60"])

    server = process_row(pane.process().parent_pid)

    assert server is not None
    assert server.parent_pid == 1 or server.parent_pid != os.getpid()
    rows = await wait_until(lambda: computer.processes("sleep"), "a sleep")
    assert [row.pid for row in rows] == [pane.process().pid]


async def test_stopping_a_computer_ends_even_what_ignores_a_hangup(
    scratch_folder: Path,
) -> None:
    async with computer_in(scratch_folder) as computer:
        deaf = "trap '' HUP TERM; echo deaf; exec sleep 60"
        pane = computer.open_terminal("deaf", ["sh", "-c", deaf])
        await pane.wait_text("deaf")
        await wait_until(lambda: computer.processes("sleep"), "a deaf process")
        stubborn = pane.process()

    assert not stubborn.is_alive()
    assert "deaf" in (computer.artefacts / "screen-deaf.txt").read_text()


async def test_a_missing_program_is_named_at_once(computer: Computer) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await computer.run("no-such-program")


async def test_a_wait_that_fails_says_for_what() -> None:
    with pytest.raises(NeverHappened, match="a blue moon"):
        await wait_until(lambda: False, "a blue moon", deadline_s=0.05)


@pytest.mark.parametrize(
    ("environment", "required"),
    [
        ({}, False),
        ({"CI": "false"}, False),
        ({"CI": "true"}, True),
        ({"AGENTWORKS_REQUIRE_CLIENTS": "1"}, True),
    ],
)
def test_missing_clients_fail_a_run_that_must_have_them_and_no_other(
    environment: dict[str, str], required: bool
) -> None:
    assert must_have_clients(environment) is required
