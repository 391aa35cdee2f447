"""The scripted scenario of the crash test, and what must hold however it ends.

Alice and bob are attached, write to each other, acknowledge, and alice is
detached. `Ledger` notes what the daemon said yes to and what it printed; the
second part asks again for what was not answered, as agents do, and looks.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.faults.lives import Lives
from tests.journeys.rig.canary import unmarked
from tests.journeys.rig.waiting import until_some

SHOWN = re.compile(
    r"^\[\w+\] message \d+ of \d+ from .*, (msg-[0-9a-f-]{36}), inbox-\S+\n(.*)$",
    re.MULTILINE,
)
NAMED = re.compile(r"^(msg-[0-9a-f-]{36}) may not have reached you", re.MULTILINE)
MAYBE_EMITTED = {"offering", "recalled", "offered", "ambiguous"}
ACKNOWLEDGED = {"admitted", "processed"}
# Submission id: who says what to whom.
SAID = {
    "one": ("alice", "bob"),
    "two": ("bob", "alice"),
    "three": ("alice", "bob"),
    "four": ("alice", "bob"),
}


class Ledger:
    """What was answered and what was printed, over all lives of the daemon."""

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.acknowledged: dict[str, str] = {}
        self.shown: Counter[str] = Counter()
        self.named: Counter[str] = Counter()
        self.id_of: dict[str, str] = {}
        self.is_detaching = False
        self.is_detached = False

    def take(self, printed: str) -> None:
        """What a hook printed."""
        for message_id, text in SHOWN.findall(printed):
            self.id_of[text] = message_id
            self.shown[message_id] += 1
        self.named.update(NAMED.findall(printed))

    def has(self, text: str) -> bool:
        """It was shown, or named as perhaps not arrived."""
        return text in self.id_of and bool(
            self.shown[self.id_of[text]] or self.named[self.id_of[text]]
        )


class Story:
    """The scenario on one state folder."""

    def __init__(self, lives: Lives, number: int) -> None:
        self._computer = lives.computer
        self._agents = {"alice": lives.alice, "bob": lives.bob}
        # One server hears all stories: each has names of its own.
        self._names = {each: f"{each}-{number}" for each in self._agents}
        self.ledger = Ledger()

    # ---- the first part: until the daemon dies, or to the end ----------------------

    async def play(self) -> None:
        """Everything once; raises Denied when the daemon is gone."""
        for each in self._agents:
            await self._attach(each)
        await self._say("one")
        await self._hear("one")
        await self._acknowledge("one", "admitted")
        await self._reply("two", to="one")
        await self._hear("two")
        await self._say("three")
        await self._say("four")
        await self._hear("four")
        await self._acknowledge("one", "processed")
        await self._acknowledge("four", "processed")
        await self._detach()
        await self._computer.person("stop")

    async def _attach(self, who: str) -> None:
        await self._computer.attach(self._agents[who], self._names[who])

    async def _say(self, submission_id: str) -> None:
        sender, receiver = SAID[submission_id]
        await self._agents[sender].send(
            self._names[receiver], submission_id, submission_id
        )
        self.ledger.accepted.add(submission_id)

    async def _reply(self, submission_id: str, to: str) -> None:
        await self._agents[SAID[submission_id][0]].verb(
            "reply",
            message_id=self.ledger.id_of[to],
            message=submission_id,
            submission_id=submission_id,
        )
        self.ledger.accepted.add(submission_id)

    async def _hear(self, submission_id: str) -> None:
        receiver = self._agents[SAID[submission_id][1]]

        async def look() -> bool:
            self.ledger.take(await receiver.stop())
            return self.ledger.has(submission_id)

        await until_some(look, f"{submission_id} in a hook")

    async def _acknowledge(self, submission_id: str, delivery: str) -> None:
        await self._agents[SAID[submission_id][1]].verb(
            "ack", message_id=self.ledger.id_of[submission_id], delivery=delivery
        )
        self.ledger.acknowledged[submission_id] = delivery

    async def _detach(self) -> None:
        self.ledger.is_detaching = True
        await self._computer.person("detach", name=self._names["alice"])
        self.ledger.is_detached = True

    # ---- what the dead daemon left -------------------------------------------------

    def inspect(self, folder: Path) -> dict[str, int]:
        """The journal as it was left, from a copy; its watermarks by name."""
        with copied(self._computer.paths.journal, folder) as journal:
            assert journal.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            if not journal.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                assert not self.ledger.shown
                return {}
            self._every_yes_is_kept(journal)
            self._what_was_printed_was_saved(journal)
            found = journal.execute(
                "SELECT name, max(watermark) FROM attachment GROUP BY name"
            )
            return dict(found.fetchall())

    def _every_yes_is_kept(self, journal: sqlite3.Connection) -> None:
        rows = journal.execute("SELECT submission_id, state, body FROM submission")
        kept = {
            submission_id
            for submission_id, state, body in rows
            if state == "accepted" or unmarked(body) == submission_id
        }
        if not self.ledger.is_detaching:
            assert self.ledger.accepted <= kept

    def _what_was_printed_was_saved(self, journal: sqlite3.Connection) -> None:
        rows = journal.execute("SELECT message_id, state, offer_id FROM delivery")
        states = {message_id: state for message_id, state, offer in rows if offer}
        for message_id in self.ledger.shown:
            is_alices = self.ledger.id_of.get("two") == message_id
            if not (is_alices and self.ledger.is_detaching):
                assert states.get(message_id) in MAYBE_EMITTED | ACKNOWLEDGED

    # ---- the second part: a daemon that lives ----------------------------------------

    async def finish(self) -> None:
        """Ask again for what was not answered, end turns, and look at everything."""
        await self._attach_again()
        await self._say_again("one")
        await self._hear_again("one")
        await self._say_again("two")
        await self._hear_again("two")
        await self._say_again("three")
        await self._say_again("four")
        await self._hear_again("three")
        await self._hear_again("four")
        await self._all_is_at_the_server_once()
        await self._nothing_is_shown_twice()
        if self.ledger.is_detached:
            await until_some(self._alice_is_gone, "the end of alice's detach")
        self._no_tokens_are_left_over()
        assert self._computer.canaries.look() == []

    async def _attach_again(self) -> None:
        rows = (await self._computer.person("agents"))["agents"]
        attached = {row["name"] for row in rows if row["state"] == "attached"}
        for each, name in self._names.items():
            if name not in attached and not self._is_leaving(each):
                await self._attach(each)

    def _is_leaving(self, who: str) -> bool:
        return who == "alice" and self.ledger.is_detaching

    async def _say_again(self, submission_id: str) -> None:
        if submission_id in self.ledger.accepted:
            return
        if submission_id == "two":
            await self._reply("two", to="one")
        else:
            await self._say(submission_id)

    async def _hear_again(self, submission_id: str) -> None:
        receiver = SAID[submission_id][1]
        if self._is_leaving(receiver):
            return

        async def known() -> str:
            await self._mailbox(receiver)
            return self.ledger.id_of.get(submission_id, "")

        await until_some(known, f"{submission_id} at the server")
        await self._hear(submission_id)

    async def _mailbox(self, who: str) -> dict[str, dict[str, Any]]:
        """What the server keeps for this agent, by text; each text once."""
        page = await self._computer.person("messages_read", agent=self._names[who])
        texts = Counter(row["message"] for row in page["messages"])
        assert set(texts.values()) <= {1}, texts
        for row in page["messages"]:
            self.ledger.id_of[row["message"]] = row["message_id"]
        return {row["message"]: row for row in page["messages"]}

    async def _all_is_at_the_server_once(self) -> None:
        async def look() -> bool:
            kept = await self._mailbox("bob") | await self._mailbox("alice")
            assert set(kept) == set(SAID)
            return all(
                _is_at_least(kept[text]["delivery"], delivery)
                for text, delivery in self.ledger.acknowledged.items()
            )

        await until_some(look, f"receipts {self.ledger.acknowledged}")

    async def _nothing_is_shown_twice(self) -> None:
        for each, agent in self._agents.items():
            if not self._is_leaving(each):
                assert await agent.stop() == ""
        assert set(self.ledger.shown.values()) <= {1}, self.ledger.shown
        assert set(self.ledger.named.values()) <= {1}, self.ledger.named

    async def _alice_is_gone(self) -> bool:
        return await self._computer.row(self._names["alice"]) is None

    def _no_tokens_are_left_over(self) -> None:
        left = list(self._computer.paths.leases.iterdir())
        if self.ledger.is_detached:
            assert len(left) == 1, left
        elif not self.ledger.is_detaching:
            assert len(left) == 2, left


def _is_at_least(delivery: str, wanted: str) -> bool:
    order = ["stored", "admitted", "processed"]
    return order.index(delivery) >= order.index(wanted)


@contextmanager
def copied(journal: Path, folder: Path) -> Iterator[sqlite3.Connection]:
    """A copy of the journal and its log, opened: what a start would find."""
    folder.mkdir()
    for file in (journal, journal.with_name(f"{journal.name}-wal")):
        if file.exists():
            shutil.copy(file, folder)
    with closing(sqlite3.connect(folder / journal.name)) as opened:
        yield opened
