"""The books of a soak: whether they balance, and what is off.

Owns the rules, and nothing that reads a file. Promises that

    accepted = processed + admitted + offered + unsure + pending + withheld

or that each id which is missing is named; that a message handed twice, kept and
lost, said to be offered without a print, acknowledged by nobody or unsure without
a cause is a fault; and that the same evidence gives the same faults.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import Struct

from tests.soak.facts import NOWHERE, Ack, Evidence, Handed, Hook, Row, Stored

# A daemon that dies after a hook has ended may not have saved how it ended.
SAVED_WITHIN_S = 2.0
# The promise is 30 s and a round trip; a bridge may have stood still meanwhile.
RELEASED_FOR_S = 36.0
CLASSES = ("processed", "admitted", "offered", "unsure", "pending", "withheld")
_CUT_KINDS = frozenset({"killed", "dropped", "waited"})
_UNSHOWN_KINDS = frozenset({"refused", "forged"})
_RETRACTIONS = frozenset({"name_unregistered", "connection_revoked"})
_CLASS_OF_STATE = {
    "pending": "pending",
    "offering": "open",
    "recalled": "open",
    "offered": "offered",
    "ambiguous": "unsure",
    "admitted": "admitted",
    "processed": "processed",
}
_DEEDS = ("admitted", "processed")
T = TypeVar("T")


class Fault(Struct, frozen=True, order=True):
    """Something that may not be; `id` is a message, submission or name."""

    id: str
    what: str


class End(Struct, frozen=True):
    """Where one message stands; `open`, `lost` and `stuck` are no classes."""

    name: str
    reason: str = ""


class Ledger(Struct, frozen=True):
    """The result."""

    sent: int
    kept: int
    refused: Mapping[str, int]
    dropped: int
    accepted: int
    classes: Mapping[str, int]
    reasons: Mapping[str, int]
    unsure_offers: int
    causes: int
    faults: tuple[Fault, ...]

    @property
    def balances(self) -> bool:
        """Nothing is off, and the sum is right."""
        return not self.faults and self.accepted == sum(self.classes.values())


def balance(evidence: Evidence) -> Ledger:
    """Do the books."""
    books = Books(evidence)
    tried = {each.submission_id for each in evidence.attempts}
    return Ledger(
        sent=len(tried),
        kept=len(books.kept),
        refused=Counter(books.refused.values()),
        dropped=len(evidence.dropped & tried),
        accepted=len(evidence.stored),
        classes={
            name: sum(end.name == name for end in books.ends.values())
            for name in CLASSES
        },
        reasons=Counter(e.reason for e in books.ends.values() if e.name == "withheld"),
        unsure_offers=sum(books.unsure_offers().values()),
        causes=sum(map(len, books.causes().values())),
        faults=tuple(sorted(set(books.faults()))),
    )


def _by(attribute: str, facts: Iterable[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = defaultdict(list)
    for fact in facts:
        found[getattr(fact, attribute)].append(fact)
    return found


class Books:
    """One evidence, found by id; each rule below yields what breaks it."""

    def __init__(self, evidence: Evidence) -> None:
        self._all = evidence
        self._rows = _by("message_id", evidence.rows)
        self._acks = _by("message_id", evidence.acks)
        self._attempts = _by("submission_id", evidence.attempts)
        self._outgoing = {each.submission_id: each for each in evidence.outgoing}
        self._stored = {each.message_id: each for each in evidence.stored}
        self._sent = _by("submission_id", evidence.stored)
        self._handed: dict[str, list[tuple[Hook, Handed]]] = defaultdict(list)
        for hook in evidence.hooks:
            for handed in hook.handed:
                self._handed[handed.message_id].append((hook, handed))
        self._told_refused = {
            said.removeprefix("refused ")
            for hook in evidence.hooks
            if hook.kind not in _UNSHOWN_KINDS
            for said in hook.once
        }
        self.kept = {
            each.submission_id
            for each in evidence.attempts
            if each.answer in ("accepted", "queued")
        }
        self.refused = {id_: why for id_ in self._attempts if (why := self._no(id_))}
        self.ends = {each.message_id: self._end(each) for each in evidence.stored}

    def faults(self) -> Iterator[Fault]:
        """Everything that is off."""
        yield from self._living()
        yield from self._kept_and_lost()
        yield from self._sent_twice()
        yield from self._handed_wrongly()
        yield from self._ended_wrongly()
        yield from self._said_without_a_deed()
        yield from self._deeds_forgotten()
        yield from self._unsure_without_cause()
        yield from self._unsure_named_wrongly()
        yield from self._shown_too_late()
        yield from self._server_not_told()
        yield from self._said_twice()
        yield from self._out_of_order()

    def _no(self, submission_id: str) -> str:
        """Why it was refused for good, empty when it was not."""
        known = self._outgoing.get(submission_id)
        if known is not None and known.code:
            return known.code
        if submission_id in self._told_refused:
            return "told in an offer"
        attempts = self._attempts[submission_id]
        if any(each.may_be_kept for each in attempts):
            return ""
        return attempts[-1].answer

    # ---- where one message stands -------------------------------------------------

    def _end(self, message: Stored) -> End:
        said = [_in_journal(row) for row in self._rows[message.message_id]]
        known = [each for each in (*said, _at_server(message)) if each is not None]
        if known:
            return min(known, key=lambda end: _ORDER.index(end.name))
        if message.recipient in self._all.unregistered:
            return End("withheld", "recipient_unregistered")
        taken = self._all.attached.get(message.recipient)
        if taken is None:
            return End("pending")
        return End("lost" if message.sequence <= taken else "stuck")

    # ---- rules ----------------------------------------------------------------------

    def _kept_and_lost(self) -> Iterator[Fault]:
        """What somebody was told is kept has arrived, or was refused or listed."""
        excused = {*self.refused} | self._all.dropped | self._waiting()
        for id_ in self.kept:
            is_accepted = any(e.answer == "accepted" for e in self._attempts[id_])
            if id_ not in self._sent and (is_accepted or id_ not in excused):
                yield Fault(id_, "kept, and then lost on the way to the server")

    def _waiting(self) -> set[str]:
        """Kept for an agent that is away: it goes out when its name is back."""
        return {
            id_
            for id_, each in self._outgoing.items()
            if each.state not in ("accepted", "refused")
            and each.agent not in self._all.attached
        }

    def _living(self) -> Iterator[Fault]:
        for name, taken in self._all.attached.items():
            if taken == NOWHERE:
                yield Fault(name, "its chat lives, and its attachment does not")

    def _sent_twice(self) -> Iterator[Fault]:
        for id_, messages in self._sent.items():
            if len(messages) > 1:
                yield Fault(id_, "one submission, several messages")
            if id_ not in self._attempts:
                yield Fault(id_, "stored, and nobody has sent it")
        for id_, attempts in self._attempts.items():
            told = {each.message_id for each in attempts if each.message_id}
            if len(told | {each.message_id for each in self._sent.get(id_, ())}) > 1:
                yield Fault(id_, "its sender was told another message id")

    def _handed_wrongly(self) -> Iterator[Fault]:
        for id_, pairs in self._handed.items():
            shown = [hook for hook, _ in pairs if hook.kind not in _UNSHOWN_KINDS]
            message = self._stored.get(id_)
            if len(shown) > 1:
                yield Fault(id_, "handed more than once")
            if message is None:
                yield Fault(id_, "handed, and the server has no such message")
            elif any(hook.agent != message.recipient for hook, _ in pairs):
                yield Fault(id_, "handed to another agent")
            if any(hook.kind == "forged" for hook, _ in pairs):
                yield Fault(id_, "handed to a forged hook")
            if not all(handed.is_whole for _, handed in pairs):
                yield Fault(id_, "handed with another body")

    def _ended_wrongly(self) -> Iterator[Fault]:
        for id_, end in self.ends.items():
            if end.name not in CLASSES:
                yield Fault(id_, f"{end.name}: it is in no class of the ledger")
            is_there = self._stored[id_].recipient in self._all.attached
            if end.name == "pending" and is_there:
                yield Fault(id_, "still pending, though its agent asked to the end")
            if end.name == "pending" and self._shown(id_):
                yield Fault(id_, "handed and still pending: it would be repeated")

    def _said_without_a_deed(self) -> Iterator[Fault]:
        """Nothing is called offered, admitted or processed that was not so."""
        for id_, end in self.ends.items():
            if end.name == "offered" and not self._shown(id_):
                yield Fault(id_, "called offered, and no hook was handed it")
            if end.name in _DEEDS and not self._acked(id_, end.name):
                yield Fault(id_, f"called {end.name}, and its agent never said so")

    def _deeds_forgotten(self) -> Iterator[Fault]:
        """What an agent was told is noted is noted, here and at the server."""
        for id_, acks in self._acks.items():
            told = {each.answer for each in acks} & {*_DEEDS}
            message = self._stored.get(id_)
            if message is None or not told:
                continue
            if message.recipient not in self._all.attached:
                continue  # its receipts wait for its next lease
            wanted = "processed" if "processed" in told else "admitted"
            enough = {"processed"} if wanted == "processed" else {*_DEEDS}
            if message.delivery not in enough:
                yield Fault(id_, f"{wanted}, and the server says {message.delivery}")

    def _unsure_without_cause(self) -> Iterator[Fault]:
        causes = self.causes()
        for agent, count in self.unsure_offers().items():
            if count > len(causes.get(agent, ())):
                found = len(causes.get(agent, ()))
                yield Fault(agent, f"{count} unsure offers for {found} cut hooks")

    def _unsure_named_wrongly(self) -> Iterator[Fault]:
        named: Counter[str] = Counter()
        for hook in self._all.hooks:
            if hook.kind not in _UNSHOWN_KINDS:
                named.update(hook.unsure)
        for id_, count in named.items():
            if count > 1:
                yield Fault(id_, "named as unsure more than once")
        for id_, end in self.ends.items():
            is_there = self._stored[id_].recipient in self._all.attached
            is_here = any(row.state == "ambiguous" for row in self._rows[id_])
            is_untold = end.name == "unsure" and is_there and is_here
            if is_untold and not named[id_] and not self._may_have_been_named(id_):
                yield Fault(id_, "unsure, and its agent was never told")

    def _may_have_been_named(self, message_id: str) -> bool:
        """The offer that named it may have been cut off as well."""
        cuts = self.causes().get(self._stored[message_id].recipient, ())
        return len(cuts) > 1 and any(row.named for row in self._rows[message_id])

    def _shown_too_late(self) -> Iterator[Fault]:
        for id_, pairs in self._handed.items():
            message = self._stored.get(id_)
            gone_at = self._all.unregistered.get(message.sender) if message else None
            if gone_at is None:
                continue
            if any(hook.began > gone_at + RELEASED_FOR_S for hook, _ in pairs):
                yield Fault(id_, "shown long after its sender was gone")

    def _server_not_told(self) -> Iterator[Fault]:
        """What a living agent was offered, or perhaps was, the server knows."""
        wanted = {"offered": "offered", "ambiguous": "unsure"}
        for message in self._all.stored:
            if message.recipient not in self._all.attached:
                continue
            for row in self._rows[message.message_id]:
                observed = wanted.get(row.state, message.observed)
                if observed != message.observed and message.delivery not in _DEEDS:
                    yield Fault(
                        row.message_id, f"{row.state}, and not so at the server"
                    )

    def _said_twice(self) -> Iterator[Fault]:
        said: Counter[str] = Counter()
        for hook in self._all.hooks:
            if hook.kind not in _UNSHOWN_KINDS:
                said.update(hook.once)
        for what, count in said.items():
            if count > 1:
                yield Fault(what, "said more than once")

    def _out_of_order(self) -> Iterator[Fault]:
        """Within one conversation an agent is shown what came first, first."""
        last: dict[tuple[str, str], int] = {}
        for hook in sorted(self._all.hooks, key=lambda each: each.began):
            if hook.kind in _UNSHOWN_KINDS:
                continue
            for handed in hook.handed:
                message = self._stored.get(handed.message_id)
                if message is None:
                    continue
                place = (hook.agent, message.conversation_id)
                if message.sequence < last.get(place, 0):
                    yield Fault(handed.message_id, "handed after a later one")
                last[place] = max(message.sequence, last.get(place, 0))

    # ---- who had a reason to be unsure ---------------------------------------------

    def unsure_offers(self) -> dict[str, int]:
        """How many offers of each agent ended as unsure."""
        offers: dict[str, set[str]] = defaultdict(set)
        elsewhere: set[str] = set()
        for id_, end in self.ends.items():
            if end.name != "unsure":
                continue
            agent = self._stored[id_].recipient
            here = {r.offer_id for r in self._rows[id_] if r.state == "ambiguous"}
            offers[agent] |= here
            # A detach took the rows: the server still knows that it is unsure,
            # though not with which others it was offered.
            elsewhere |= set() if here else {agent}
        for agent in elsewhere:
            offers[agent] |= set() if offers[agent] else {""}
        return {agent: len(found) for agent, found in offers.items() if found}

    def causes(self) -> dict[str, list[Hook]]:
        """The hooks of each agent that were cut off, or whose daemon was."""
        kills = [each.at for each in self._all.kills if each.which == "bridge"]
        cut: dict[str, list[Hook]] = defaultdict(list)
        for hook in self._all.hooks:
            has_text = bool(hook.handed or hook.unsure)
            until = hook.ended + (SAVED_WITHIN_S if has_text else 0.0)
            is_cut = any(hook.began <= at <= until for at in kills)
            if hook.kind in _CUT_KINDS or (is_cut and hook.kind != "forged"):
                cut[hook.agent].append(hook)
        return cut

    def _shown(self, message_id: str) -> bool:
        pairs = self._handed.get(message_id, ())
        return any(hook.kind not in _UNSHOWN_KINDS for hook, _ in pairs)

    def _acked(self, message_id: str, delivery: str) -> bool:
        return any(
            each.delivery == delivery and _is_of(each, self._stored[message_id])
            for each in self._acks.get(message_id, ())
        )


_ORDER = ("processed", "admitted", "offered", "unsure", "open", "pending", "withheld")


def _is_of(ack: Ack, message: Stored) -> bool:
    return ack.agent == message.recipient


def _in_journal(row: Row) -> End | None:
    """None for what says nothing for good: another lease may have it yet."""
    if row.state == "withheld":
        return End("withheld", row.reason) if row.reason in _RETRACTIONS else None
    name = _CLASS_OF_STATE.get(row.state)
    return None if name is None else End(name)


def _at_server(message: Stored) -> End | None:
    if message.delivery in _DEEDS:
        return End(message.delivery)
    if message.observed:
        return End({"offered": "offered", "unsure": "unsure"}[message.observed])
    if message.retracted:
        return End("withheld", message.retracted)
    return None
