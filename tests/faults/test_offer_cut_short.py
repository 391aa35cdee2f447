"""The daemon dies while it offers a message: before, during and after it is shown."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from tests.faults.capabilities import need_strace
from tests.faults.story import copied
from tests.faults.tracing import traced
from tests.journeys.rig.computer import Agent, Computer
from tests.journeys.rig.puppets import Denied
from tests.journeys.rig.running import Running

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(600)]

GONE = ("bridge_not_running", "bridge_silent")
MOST_CALLS = 100
WORDS = "sendto"  # of the main thread: to hooks, callers and the server
WRITES = "pwrite64"  # of the journal's log


class Death:
    """One message offered by a daemon that dies at the N-th call of a kind."""

    def __init__(self, computer: Computer, alice: Agent, bob: Agent) -> None:
        self._computer = computer
        self._alice = alice
        self._bob = bob
        self.text = ""
        self.message_id = ""
        self.shown = ""

    async def offer(self, daemon: Running, call: str, number: int) -> bool:
        """True when the daemon outlived the offer and its acknowledgement."""
        self.text = f"text number {number}."
        sent = await self._alice.send("bob", self.text)
        self.message_id = sent["message_id"]
        await self._computer.until_row("bob", pending=1)
        kill = f"inject={call}:signal=SIGKILL:when={number}"
        calls = ["-e", f"trace={call}", "-e", kill]
        if call == WRITES:
            calls += ["-P", f"{self._computer.paths.journal}-wal"]
        async with traced(daemon.pid, *calls, threads=call == WRITES):
            self.shown = await self._bob.stop()
            try:
                await self._bob.verb(
                    "ack", message_id=self.message_id, delivery="processed"
                )
            except Denied as denied:
                if denied.code not in GONE:
                    raise
                await daemon.end()
                return False
        return True

    @property
    def was_shown(self) -> bool:
        """The agent saw it before the daemon died."""
        return self.text in self.shown

    def saved(self, folder: Path) -> str:
        """The state that the dead daemon left the message in."""
        with copied(self._computer.paths.journal, folder) as journal:
            found = journal.execute(
                "SELECT state FROM delivery WHERE message_id = ?", (self.message_id,)
            )
            return str(found.fetchone()[0])

    async def offer_again(self) -> str:
        """Everything that the next daemon prints, until all that is new came."""
        last = f"{self.text} And another."
        await self._alice.send("bob", last)
        printed = ""
        while last not in printed:
            printed += await self._bob.mail()
        return printed.replace(last, "")


async def test_killed_at_any_point_of_an_offer_it_is_shown_or_named_and_never_again(
    computer: Computer, tmp_path: Path
) -> None:
    """Between its row and its text; between its text and the note that it was shown."""
    need_strace()
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    met: Counter[tuple[str, bool]] = Counter()
    for call, step in ((WORDS, 1), (WRITES, 4)):
        for number in count(1, step):
            assert number < MOST_CALLS
            death = Death(computer, alice, bob)
            if await death.offer(daemon, call, number):
                break
            state = death.saved(tmp_path / f"{call}-{number}")
            daemon = await computer.start_bridge()
            await look_at(death, state, bob)
            met[state, death.was_shown] += 1

    assert met["offering", False], met
    assert met["offering", True], met


async def look_at(death: Death, state: str, bob: Agent) -> None:
    """The next daemon says what is true of the message, once."""
    later = await death.offer_again()
    is_named = f"{death.message_id} may not have reached you" in later
    if state == "pending":
        assert not death.was_shown
        assert later.count(death.text) == 1
        assert not is_named
    else:
        assert death.text not in later
        assert is_named is (state in ("offering", "recalled"))
        page = await bob.verb("read")
        assert death.text in [row["message"] for row in page["messages"]]
