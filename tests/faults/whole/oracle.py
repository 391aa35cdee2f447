"""What must hold of bob's mail, told by what is seen from outside.

Knows nothing of how the bridge does it: what the server brought, what hooks
printed and said, what the agent was answered, and which rows are on the disk.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

WAITING = {"pending", "offering", "recalled"}
OUT = {"offering", "recalled"}
MAYBE = {"offering", "recalled", "offered", "ambiguous", "admitted", "processed"}


class Row(Struct, frozen=True):
    """One delivery on the disk."""

    lease: str
    message: str
    state: str
    has_body: bool
    named: bool


class MailOracle:
    """See the module; every method raises AssertionError when a promise is broken."""

    def __init__(self) -> None:
        self.maybe_shown: set[str] = set()
        self.seen: set[str] = set()
        self.named: Counter[str] = Counter()
        self.printed: set[str] = set()
        self.tried: set[str] = set()
        self.read: set[str] = set()
        self.said: defaultdict[str, set[str]] = defaultdict(set)
        self.answered: defaultdict[str, set[str]] = defaultdict(set)
        self.retracted: set[str] = set()
        self.ended_leases: set[str] = set()
        self.detached: set[str] = set()
        self.aged: set[str] = set()
        self.told: set[str] = set()
        self.offered_in: defaultdict[str, set[str]] = defaultdict(set)
        self.rows: dict[tuple[str, str], Row] = {}
        self.watermarks: dict[str, int] = {}

    # ---- what happens ------------------------------------------------------------

    def print(self, shown: list[str], named: list[str], disk: dict[str, Row]) -> None:
        """A hook has a whole print in its hands, and has not said a word."""
        for message in shown:
            assert message in disk, f"P1: {message} is printed and not on the disk"
            state = disk[message].state
            assert state in OUT, f"P1: {message} is printed and {state} on the disk"
            assert message not in self.maybe_shown, f"P2: {message} is shown again"
            assert message not in self.retracted, f"{message} was retracted, and shown"
        for message in named:
            assert not self.named[message], f"P2: {message} is named again"
        self.tried.update(shown)
        self.maybe_shown.update(shown)
        self.named.update(named)

    def word(
        self, shown: list[str], named: list[str], word: str, *, is_seen: bool
    ) -> None:
        """The hook ends; only an unprinted offer was certainly not shown."""
        if word == "unprinted":
            self.maybe_shown.difference_update(shown)
            self.named.subtract(named)
        if word == "printed":
            self.printed.update(shown)
        if is_seen:
            self.seen.update(shown)

    def says(self, message: str, delivery: str) -> None:
        """The agent asks for this receipt; processed brings admitted with it."""
        self.said[message] |= {delivery, "admitted"}

    def is_answered(self, message: str, delivery: str) -> None:
        """The agent was told that its receipt is kept."""
        self.answered[message].add(delivery)

    def is_read(self, messages: list[dict[str, Any]]) -> None:
        """The agent has read these by hand."""
        self.read.update(each["message_id"] for each in messages)

    def is_detached(self, lease: str, arrived: set[tuple[str, str]] | None) -> None:
        """The person ended it, and with it what only this computer knew.

        `arrived` are the receipts that the server had, where it takes no more.
        """
        self.ended_leases.add(lease)
        self.detached.add(lease)
        if arrived is not None:
            for message, said in self.answered.items():
                said &= {each for each in said if (message, each) in arrived}

    def ages(self) -> None:
        """A week went by: what was offered is forgotten.

        So is what an ended lease never told: the server takes nothing from it.
        """
        for lease, rows in self.offered_in.items():
            self.aged |= rows
            if lease in self.ended_leases:
                self.maybe_shown -= rows - self.told

    def receipt(self, message: str, delivery: str) -> None:
        """The server hears a sign of ours."""
        self.told.add(message)
        if delivery in ("admitted", "processed"):
            assert delivery in self.said[message], f"P3: {message} {delivery} invented"
        if delivery == "offered":
            assert message in self.printed, f"P3: nobody said {message} was printed"

    # ---- what must hold after each step ------------------------------------------

    def look(self, rows: list[Row], watermarks: Mapping[str, int]) -> None:
        """The disk, when nothing is under way."""
        for lease, watermark in self.watermarks.items():
            now = watermarks.get(lease, watermark)
            assert now >= watermark, f"P5: {lease} fell from {watermark} to {now}"
        self.watermarks.update(watermarks)
        now_rows = {(row.lease, row.message): row for row in rows}
        for row in rows:
            assert row.has_body == (row.state in WAITING), f"{row} keeps a wrong body"
            if row.state in MAYBE:
                self.offered_in[row.lease].add(row.message)
        for key, before in self.rows.items():
            after = now_rows.get(key)
            if before.state == "pending" and key[0] not in self.ended_leases:
                assert after is not None, f"{key} waited and is gone"
                self._left_pending_rightly(after)
        self.rows = now_rows

    def _left_pending_rightly(self, row: Row) -> None:
        message = row.message
        match row.state:
            case "admitted" | "processed":
                assert self.said[message], f"P3: {message} became {row.state}"
            case "withheld":
                assert message in self.retracted, f"{message} was withheld"
            case "offered":
                assert message in self.printed, f"{message} was shown to nobody"

    # ---- what must hold at the end -----------------------------------------------

    def nothing_is_lost(self, posted: list[str], excused: set[str]) -> None:
        """Everything was shown, named, read or acknowledged; or there is a reason."""
        known = self.seen | self.read | {m for m, n in self.named.items() if n > 0}
        known |= {message for message, said in self.answered.items() if said}
        known |= self.retracted | self.aged | excused
        for lease in self.detached:
            known |= self.offered_in[lease]
        for lease in self.ended_leases:
            # Its host took it; that the host then dropped it, nobody can know.
            known |= self.offered_in[lease] & self.printed
        lost = [message for message in posted if message not in known]
        assert not lost, f"lost: {lost}"
