"""Another program, such as a database shell, holds the journal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.journeys.rig.computer import Computer
from tests.journeys.rig.puppets import Denied

pytestmark = [pytest.mark.crash, pytest.mark.slow]

_HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(journal: Path) -> Iterator[None]:
    """A process of its own that could write at any moment, and does not."""
    command = [sys.executable, "-c", _HOLD, str(journal)]
    piped = subprocess.PIPE
    with subprocess.Popen(command, stdin=piped, stdout=piped) as shell:
        assert shell.stdout is not None
        assert shell.stdout.readline() == b"held\n"
        yield
        shell.communicate(timeout=10)


async def test_a_journal_held_by_a_shell_is_unavailable_and_nothing_crashes(
    computer: Computer,
) -> None:
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    await alice.send("bob", "before.", "one")
    await computer.until_row("bob", pending=1)
    with held(computer.paths.journal):
        with pytest.raises(Denied, match="Another program") as denied:
            await alice.send("bob", "meanwhile.", "two")
        assert await bob.stop() == ""
        status = await computer.person("status")
        assert "Another program holds the journal" in status["warnings"][0]
        assert (await computer.row("bob") or {})["pending"] == 1
        assert (await bob.verb("read"))["messages"]

    assert (denied.value.code, denied.value.exit) == ("journal_busy", 75)
    await alice.send("bob", "meanwhile.", "two")
    offers = ""
    while "meanwhile." not in offers:
        offers += await bob.mail()
    assert (offers.count("before."), offers.count("meanwhile.")) == (1, 1)
    assert (await computer.person("status"))["warnings"] == []
    assert daemon.ended is None
    assert "Traceback" not in daemon.said


async def test_a_start_beside_a_shell_that_writes_is_refused_for_now(
    computer: Computer,
) -> None:
    """An offer was out, and that it is unsure has to be noted before anything."""
    first = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    await alice.send("bob", "out when it died.")
    await computer.until_row("bob", pending=1)
    assert "out when it died." in await bob.hold()
    await first.kill()
    with held(computer.paths.journal):
        refused = await computer.launch_bridge()
        code = await refused.end()

    assert code == 75
    assert "Another program holds the journal" in refused.said
    assert "Traceback" not in refused.said
    await computer.start_bridge()
    assert "may not have reached you" in await bob.mail()
