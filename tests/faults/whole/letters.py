"""What must hold of what bob's agent sends, told by what is seen from outside."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from bridge.errors import BridgeError
from tests.faults.whole.answers import RETRY_AFTER_S
from tests.faults.whole.server import MessageServer

# Wall seconds since 1970 leave no room for more digits.
_ROUNDING_S = 0.001
TARGETS = ("agent:alice", "agent:carol")


class Letter(Struct, frozen=True):
    """One call of an agent: the same number is the same submission id."""

    number: int
    place: int
    text: int

    @property
    def submission_id(self) -> str:
        """What the agent chose before its first try."""
        return f"sub-{self.number}"

    @property
    def target(self) -> str:
        """To whom."""
        return TARGETS[self.place % len(TARGETS)]

    @property
    def body(self) -> str:
        """No two submissions say the same."""
        return f"letter {self.number} says {self.text}"


class LetterOracle:
    """See the module; every method raises AssertionError when a promise is broken."""

    def __init__(self, server: MessageServer) -> None:
        self._server = server
        self.tried: defaultdict[str, list[Letter]] = defaultdict(list)
        self.kept_since: dict[str, int] = {}
        self.steps = 0
        self.kept: dict[str, Letter] = {}
        self.refused: Counter[str] = Counter()
        self.forgotten: set[str] = set()

    def is_tried(self, letter: Letter) -> None:
        """An agent calls."""
        self.tried[letter.submission_id].append(letter)

    def is_answered(self, letter: Letter, answer: dict[str, Any]) -> None:
        """The agent was told that it is accepted, or kept."""
        id_ = letter.submission_id
        first = self.kept.setdefault(id_, letter)
        assert first == letter, f"P4: {id_} was taken with two contents"
        assert answer["submission_id"] == id_
        if answer["status"] == "accepted":
            taken = self._server.taken.get(id_)
            assert taken is not None, f"P4: {id_} is called accepted"
            assert taken.answer["message_id"] == answer["message_id"]

    def is_refused(self, letter: Letter, error: BridgeError) -> None:
        """The agent was told no."""
        if error.code not in ("submission_id_reused", "storage_full"):
            self.refused[letter.submission_id] += 1

    def is_told(self, submission_ids: Iterable[str]) -> None:
        """An offer told the agent, or a detach the person, that these do not go out."""
        self.refused.update(submission_ids)

    def is_detached(self) -> None:
        """The person ended the attachment, and was told what does not go out."""
        self.forgotten.update(self.kept)
        self.kept.clear()

    # ---- what must hold after each step ------------------------------------------

    def look(self, on_disk: set[str]) -> None:
        """The server's side, and what is on the disk when nothing is under way."""
        self.steps += 1
        for id_ in set(self.kept_since) - on_disk - set(self._server.taken):
            del self.kept_since[id_]  # its session was detached
        for id_ in on_disk:
            self.kept_since.setdefault(id_, self.steps)
        bodies = Counter(each.body for each in self._server.taken.values())
        again = [body for body, count in bodies.items() if count > 1]
        assert not again, f"P4: sent under two submission ids: {again}"
        for id_, taken in self._server.taken.items():
            contents = {(each.target, each.body) for each in self.tried[id_]}
            assert (taken.place, taken.body) in contents, f"{id_} says another thing"
            if id_ in self.kept and id_ not in self.forgotten:
                assert self._is_there(self.kept[id_]), f"{id_} says another thing"
        self._in_order()
        self._waits_were_kept()

    def _in_order(self) -> None:
        """What was kept at an earlier step is there before what was kept later."""
        for target in TARGETS:
            got = [
                self.kept_since.get(each.submission_id, self.steps)
                for each in self._server.taken.values()
                if each.place == target
            ]
            assert got == sorted(got), f"out of order to {target}: {got}"

    def _waits_were_kept(self) -> None:
        """No submission is tried again before the time that the server asked for."""
        asked: dict[str, float] = {}
        for at, id_, life, fault in self._server.attempts:
            key = f"{id_} of life {life}"
            is_early = at < asked.get(key, at) - _ROUNDING_S
            assert not is_early, f"{id_} was tried again too early"
            if fault in ("limited", "conversation"):
                asked[key] = at + RETRY_AFTER_S

    # ---- what must hold at the end -----------------------------------------------

    def nothing_is_lost(self) -> None:
        """What was kept is at the server, or its agent was told of the refusal."""
        for id_, letter in self.kept.items():
            is_there = self._is_there(letter)
            assert is_there or self.refused[id_], f"P4: {id_} is lost"

    def _is_there(self, letter: Letter) -> bool:
        taken = self._server.taken.get(letter.submission_id)
        content = (letter.target, letter.body)
        return taken is not None and (taken.place, taken.body) == content
