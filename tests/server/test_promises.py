"""Any order of sends, receipts, moves and restarts keeps the server's promises."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import select

from bridge.server import backlog, messages
from bridge.server import receipts as signs
from bridge.server.attachments import AttachRequest, attach
from bridge.server.auth import LOCAL_ACCOUNT, LOCAL_CONNECTION, Caller, open_parent
from bridge.server.database import Database
from bridge.server.limits import MAILBOX_START, Settings
from bridge.server.messages import Outgoing, Sent
from bridge.server.parties import Side
from bridge.server.presence import Presence
from bridge.server.problems import Problem
from bridge.server.schema import attachments
from bridge.server.store import Unit
from tests.fakes.clock import FakeClock

T = TypeVar("T")

PARENT = Caller(LOCAL_CONNECTION, LOCAL_ACCOUNT, None)
NAMES = ("ann", "bob", "cid")
RANK = {"stored": 0, "typed": 1, "admitted": 2, "processed": 3}

names = st.sampled_from(NAMES)
texts = st.sampled_from(["a", "b"])
submission_ids = st.sampled_from(["1", "2", "3", "4"])


class Promises(RuleBasedStateMachine):
    """The oracle is four small dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FakeClock()
        self.settings = Settings(conversation_hourly=10_000)
        self.presence = Presence(self.clock, 600.0)
        self.open()
        self.sides: dict[str, Side] = {}
        self.leases: dict[str, str] = {}
        self.accepted: dict[tuple[str, str], tuple[str, str, Sent]] = {}
        self.mailboxes: dict[str, list[str]] = {name: [] for name in NAMES}
        self.delivery: dict[str, str] = {}
        self.told: dict[str, list[tuple[str, str]]] = {name: [] for name in NAMES}
        self.run(lambda u: open_parent(u, LOCAL_ACCOUNT, LOCAL_CONNECTION, "here"))
        for name in NAMES:
            self.attach(name)

    def open(self) -> None:
        self.database = Database(self.folder / "server.sqlite3", self.settings)

    def run(self, work: Callable[[Unit], T]) -> T:
        return self.database.transact(
            lambda sql: work(Unit(sql, self.settings, self.clock, self.presence)),
            writes=True,
        )

    def attach(self, name: str) -> None:
        request = AttachRequest("script", name, "here", name)
        attached = self.run(lambda unit: attach(unit, PARENT, request))
        agent_id = attached.agent_id
        self.leases[name] = attached.attachment_id
        self.sides[name] = Side(agent_id, LOCAL_ACCOUNT, name, agent_id, "script")

    @rule(sender=names, receiver=names, text=texts, submission_id=submission_ids)
    def send(self, sender: str, receiver: str, text: str, submission_id: str) -> None:
        earlier = self.accepted.get((sender, submission_id))
        result = self.try_send(sender, receiver, text, submission_id)

        if earlier is None and sender == receiver:
            assert result == "self_send"
        elif earlier is None:
            assert isinstance(result, Sent)
            self.accepted[sender, submission_id] = (receiver, text, result)
            self.mailboxes[receiver].append(result.message_id)
            self.delivery[result.message_id] = "stored"
        elif earlier[:2] == (receiver, text):
            assert isinstance(result, Sent)
            assert result.message_id == earlier[2].message_id
        else:
            assert result == "submission_conflict"

    def try_send(
        self, sender: str, receiver: str, text: str, submission_id: str
    ) -> Sent | str:
        """The receipt, or the code of the refusal."""
        outgoing = Outgoing(text, target=receiver, submission_id=submission_id)
        side = self.sides[sender]
        try:
            return self.run(
                lambda unit: messages.send(unit, side, LOCAL_CONNECTION, outgoing)
            )
        except Problem as problem:
            return problem.code

    @rule(
        reader=names,
        number=st.integers(0, 5),
        delivery=st.sampled_from(["typed", "admitted", "processed"]),
    )
    def acknowledge(self, reader: str, number: int, delivery: str) -> None:
        mailbox = self.mailboxes[reader]
        message_id = mailbox[number] if number < len(mailbox) else "msg-none"
        sign = signs.Receipt(message_id, signs.Delivery(delivery), 1.0)
        agent_id = self.sides[reader].key

        answer = self.run(lambda unit: signs.record(unit, agent_id, [sign]))

        if message_id == "msg-none":
            assert answer.unknown == ["msg-none"]
            return
        held = self.delivery[message_id]
        if RANK[delivery] > RANK[held]:
            self.delivery[message_id] = delivery
            if delivery != "typed":
                self.told[self.sender_of(message_id)].append((message_id, delivery))
        assert answer.recorded[0].delivery == self.delivery[message_id]

    def sender_of(self, message_id: str) -> str:
        for (sender, _), (_, _, sent) in self.accepted.items():
            if sent.message_id == message_id:
                return sender
        raise LookupError(message_id)

    @rule()
    def restart(self) -> None:
        self.database.close()
        self.open()

    @rule(name=names)
    def attach_again(self, name: str) -> None:
        before = self.leases[name]
        self.attach(name)
        assert self.leases[name] == before

    def look(self, name: str, cursor: int) -> list[backlog.Frame]:
        """Everything a stream from this cursor is told."""
        child = self.run(lambda unit: _child_of(unit, self.leases[name]))
        place = backlog.Place(self.leases[name], self.sides[name].key, child, cursor, 0)
        frames: list[backlog.Frame] = []
        while True:
            here = place
            found = self.run(lambda unit: backlog.look(unit, here))  # noqa: B023
            frames += found.frames
            place = found.place
            if not found.has_more:
                return frames

    @invariant()
    def a_stream_is_told_exactly_what_is_unread_in_order(self) -> None:
        for name, mailbox in self.mailboxes.items():
            frames = self.look(name, 0)
            shown = [frame for frame in frames if frame.event == "message"]
            expected = [
                (MAILBOX_START + number, message_id)
                for number, message_id in enumerate(mailbox, start=1)
                if self.delivery[message_id] == "stored"
            ]
            assert [(f.id, f.body["message_id"]) for f in shown] == expected

    @invariant()
    def a_sender_is_told_each_rise_once_in_order(self) -> None:
        for name, expected in self.told.items():
            told = [
                frame.body for frame in self.look(name, 0) if frame.event == "receipt"
            ]
            assert [(one["message_id"], one["delivery"]) for one in told] == expected
            assert [one["number"] for one in told] == list(range(1, len(expected) + 1))

    def teardown(self) -> None:
        self.database.close()
        shutil.rmtree(self.folder)


def _child_of(unit: Unit, attachment_id: str) -> str:
    found = unit.value(
        select(attachments.c.child_id).where(attachments.c.id == attachment_id)
    )
    return str(found)


TestPromises = Promises.TestCase
TestPromises.settings = profile(
    max_examples=8,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
