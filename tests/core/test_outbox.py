"""The outbox table, what a submission id is worth, order and bounds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from bridge.core.effects import (
    Answer,
    Count,
    Effect,
    ForgetSubmission,
    Refuse,
    SaveSubmission,
    Send,
)
from bridge.core.events import (
    Accepted,
    Event,
    LeaseMoved,
    LeaseRefused,
    RateLimited,
    ReplyLost,
    Sent,
    SubmissionDetached,
    SubmissionRefused,
    SubmissionRestarted,
)
from bridge.core.ids import AgentId, AttachmentId, InboxId, MessageId, SubmissionId
from bridge.core.outbox import (
    ANSWERED,
    BYTES_LIMIT,
    COUNT_LIMIT,
    KEPT_FOR_S,
    LONGEST_WAIT_S,
    TABLE,
    admit,
    content_hash,
    handle,
    has_room,
    mark_told,
    next_to_send,
    to_forget,
)
from bridge.core.records import Submission, SubmissionState
from tests.fakes.effects import kinds, saves_come_first

OLD_LEASE = AttachmentId("att-1")
NEW_LEASE = AttachmentId("att-2")
ACCEPTED = Accepted(5.0, MessageId("msg-9"), InboxId("inbox-9"), "conv-9", 4)
MOVED = LeaseMoved(5.0, NEW_LEASE)
EVENTS: list[Event] = [
    Sent(5.0),
    ACCEPTED,
    SubmissionRefused(5.0, "unknown_name", "No agent has that name."),
    LeaseRefused(5.0),
    RateLimited(5.0, not_before=65.0),
    ReplyLost(5.0),
    SubmissionRestarted(5.0),
    MOVED,
    SubmissionDetached(5.0),
]
ANSWER = {
    "Accepted": "accepted: SaveSubmission Answer",
    "SubmissionRefused": "refused: SaveSubmission Answer TellAgent",
    "LeaseRefused": "orphaned: SaveSubmission Answer",
    "SubmissionDetached": "orphaned: SaveSubmission Answer",
}
LATE = dict.fromkeys(
    [
        "Sent",
        "Accepted",
        "SubmissionRefused",
        "LeaseRefused",
        "RateLimited",
        "ReplyLost",
    ],
    "Count",
)
SEND = {"Sent": "in_flight: SaveSubmission Send"}
EXPECTED = {
    "queued": LATE | ANSWER | SEND | {"LeaseMoved": "queued: SaveSubmission"},
    "waiting": LATE | ANSWER | SEND | {"LeaseMoved": "waiting: SaveSubmission"},
    "uncertain": LATE
    | ANSWER
    | SEND
    | {
        "RateLimited": "waiting: SaveSubmission",
        "LeaseMoved": "uncertain: SaveSubmission",
    },
    "in_flight": LATE
    | ANSWER
    | {
        "RateLimited": "waiting: SaveSubmission",
        "ReplyLost": "uncertain: SaveSubmission",
        "SubmissionRestarted": "uncertain: SaveSubmission",
        "LeaseMoved": "uncertain: SaveSubmission",
    },
    "accepted": LATE | {"LeaseMoved": "accepted: SaveSubmission"},
    "refused": LATE | {"LeaseMoved": "refused: SaveSubmission"},
    "orphaned": LATE
    | {
        "Accepted": ANSWER["Accepted"],
        "SubmissionRefused": ANSWER["SubmissionRefused"],
        "LeaseMoved": "queued: SaveSubmission",
        "SubmissionDetached": "orphaned: SaveSubmission",
    },
}


def submission(
    number: int = 1, lane: str = "agent:bob", body: str = "hi"
) -> Submission:
    return Submission(
        SubmissionId(f"sub-{number}"),
        OLD_LEASE,
        AgentId("agent-1"),
        lane,
        content_hash(lane, None, body),
        number=number,
        body=body,
        target=lane,
    )


def in_state(state: SubmissionState) -> Submission:
    return replace(submission(), state=state)


def after(*events: Event) -> Submission:
    record = submission()
    for event in events:
        record, _ = handle(record, event)
    return record


def test_every_state_has_a_rule_for_every_event() -> None:
    assert set(TABLE) == set(SubmissionState)
    for row in TABLE.values():
        assert set(row) == {type(event) for event in EVENTS}


@pytest.mark.parametrize(
    ("state", "event"),
    list(itertools.product(SubmissionState, EVENTS)),
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else value,
)
def test_each_pair_does_what_the_design_says(
    state: SubmissionState, event: Event
) -> None:
    before = in_state(state)

    record, effects = handle(before, event)

    expected = EXPECTED[state].get(type(event).__name__, "")
    moved, _, wanted = expected.rpartition(": ")
    assert record.state == (moved or state)
    assert kinds(effects) == wanted
    assert (record is before) == (not moved)
    assert saves_come_first(effects)
    if moved:
        assert (record.body is None) == (record.state in ANSWERED)
        assert effects[0] == SaveSubmission(record)
    assert record.submission_id == before.submission_id


def test_a_submission_is_saved_before_it_is_sent() -> None:
    record, effects = handle(submission(), Sent(5.0))

    assert effects == [SaveSubmission(record), Send(record)]
    assert record.attempts == 1
    assert record.body == "hi"


def test_an_accepted_submission_holds_the_servers_receipt() -> None:
    record = after(Sent(5.0), ACCEPTED)

    assert record.message_id == "msg-9"
    assert record.inbox_id == "inbox-9"
    assert record.conversation_id == "conv-9"
    assert record.sequence == 4


def test_a_refused_submission_holds_the_servers_reason() -> None:
    record = after(Sent(5.0), EVENTS[2])

    assert record.refusal_code == "unknown_name"
    assert record.refusal == "No agent has that name."


def test_a_moved_lease_carries_an_open_submission_with_it() -> None:
    record = after(Sent(5.0), MOVED)

    assert record.attachment_id == NEW_LEASE
    assert record.state == "uncertain"


def test_a_late_answer_to_an_old_lease_orphans_nothing() -> None:
    moved = after(Sent(5.0), MOVED)

    record, effects = handle(moved, LeaseRefused(6.0, OLD_LEASE))

    assert record is moved
    assert effects == [Count("LeaseRefused in uncertain")]
    assert handle(moved, LeaseRefused(6.0, NEW_LEASE))[0].state == "orphaned"


def test_an_orphan_goes_out_again_under_its_id_when_the_name_is_attached() -> None:
    orphan = after(Sent(5.0), LeaseRefused(6.0))
    assert orphan.refusal_code == "lease_ended"

    record, _ = handle(orphan, MOVED)

    assert record == replace(submission(), attempts=1, attachment_id=NEW_LEASE)


@pytest.mark.parametrize("first", [Sent(5.0), LeaseRefused(5.0)])
def test_what_a_person_detached_stays_unsent(first: Event) -> None:
    orphan = after(first, SubmissionDetached(6.0))

    record, effects = handle(orphan, MOVED)

    assert record is orphan
    assert record.refusal_code == "detached"
    assert effects == []


def test_the_same_id_with_the_same_content_answers_what_holds() -> None:
    stored = after(Sent(5.0), ACCEPTED)

    assert admit(stored, submission(), [stored]) == (stored, [Answer("accepted")])


def test_the_same_id_with_other_content_is_refused() -> None:
    stored = submission()
    other = replace(stored, content_hash=content_hash("agent:bob", None, "ho"))

    record, effects = admit(stored, other, [stored])

    (refuse,) = effects
    assert record is stored
    assert isinstance(refuse, Refuse)
    assert refuse.code == "submission_id_reused"


def test_a_new_id_is_saved_before_anything_is_answered() -> None:
    assert admit(None, submission(), []) == (
        submission(),
        [SaveSubmission(submission())],
    )


def test_a_full_outbox_refuses_new_work() -> None:
    full = [submission(number) for number in range(COUNT_LIMIT)]

    _, effects = admit(None, submission(COUNT_LIMIT), full)

    (refuse,) = effects
    assert isinstance(refuse, Refuse)
    assert refuse.code == "outbox_full"


def test_room_is_counted_in_submissions_and_bytes_without_an_answer() -> None:
    new = submission(0, body="x")
    full = [submission(number) for number in range(COUNT_LIMIT)]
    assert not has_room(full, new)
    assert has_room(full[1:], new)
    assert has_room([replace(full[0], state=SubmissionState.ACCEPTED), *full[1:]], new)

    big = submission(1, body="é" * (BYTES_LIMIT // 2))
    assert not has_room([big], new)
    assert has_room([replace(big, body="é" * (BYTES_LIMIT // 2 - 1))], new)


def test_content_is_where_it_goes_and_what_it_says() -> None:
    assert content_hash("agent:Bob", None, "x") == content_hash("agent:bob", None, "x")
    different = {
        content_hash("agent:bob", None, "x"),
        content_hash("agent:bob", None, "y"),
        content_hash("agent:eve", None, "x"),
        content_hash(None, InboxId("agent:bob"), "x"),
    }
    assert len(different) == 4


def test_only_the_head_of_each_lane_goes_out() -> None:
    rows = [
        submission(4, "agent:eve"),
        submission(3, "agent:bob"),
        submission(2, "agent:bob"),
    ]

    assert [row.number for row in next_to_send(rows, now=0.0)] == [2, 4]


@pytest.mark.parametrize(
    ("state", "goes_out"),
    [
        (SubmissionState.QUEUED, [1]),
        (SubmissionState.UNCERTAIN, [1]),
        (SubmissionState.IN_FLIGHT, []),
        (SubmissionState.WAITING, []),
        (SubmissionState.REFUSED, [2]),
        (SubmissionState.ACCEPTED, [2]),
        (SubmissionState.ORPHANED, [2]),
    ],
)
def test_what_the_head_of_a_lane_means_for_the_next(
    state: SubmissionState, goes_out: list[int]
) -> None:
    head = replace(submission(1), state=state, not_before=60.0)

    due = next_to_send([head, submission(2)], now=0.0)

    assert [row.number for row in due] == goes_out


def test_a_waiting_head_is_due_at_its_time_or_when_the_clock_was_set_back() -> None:
    head = replace(submission(1), state=SubmissionState.WAITING, not_before=1e6)

    assert next_to_send([head], now=1e6 - LONGEST_WAIT_S) == ()
    assert next_to_send([head], now=1e6 - LONGEST_WAIT_S - 1) == (head,)
    assert next_to_send([head], now=1e6) == (head,)


def test_answered_rows_are_forgotten_by_age_but_never_an_untold_refusal() -> None:
    accepted = replace(submission(1), state=SubmissionState.ACCEPTED)
    refused = replace(submission(2), state=SubmissionState.REFUSED)
    told, effects = mark_told(refused)
    assert effects == [SaveSubmission(told)]

    assert to_forget([accepted, told, submission(3)], at=KEPT_FOR_S) == []
    assert to_forget([accepted, refused, submission(3)], at=KEPT_FOR_S + 1) == [
        ForgetSubmission(accepted.submission_id, OLD_LEASE)
    ]
    assert len(to_forget([accepted, told], at=KEPT_FOR_S + 1)) == 2


def test_only_the_newest_answered_rows_are_kept() -> None:
    rows = [
        replace(submission(number), state=SubmissionState.ACCEPTED)
        for number in range(COUNT_LIMIT + 2)
    ]

    assert to_forget(rows, at=0.0) == [
        ForgetSubmission(SubmissionId("sub-1"), OLD_LEASE),
        ForgetSubmission(SubmissionId("sub-0"), OLD_LEASE),
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from(SubmissionState), st.sampled_from("abc")), max_size=30
    ),
)
def test_nothing_that_goes_out_overtakes_in_its_lane(
    rows: list[tuple[SubmissionState, str]],
) -> None:
    records = [
        replace(submission(number, lane), state=state)
        for number, (state, lane) in enumerate(rows)
    ]

    for head in next_to_send(reversed(records), now=0.0):
        assert not any(
            record.lane == head.lane
            and record.number < head.number
            and record.state in ("queued", "uncertain", "in_flight", "waiting")
            for record in records
        )


class OutboxMachine(RuleBasedStateMachine):
    """Sends over a bad link to a server that knows a submission id again."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Submission] = {}
        self.lease = OLD_LEASE
        self.server: dict[str, MessageId] = {}
        self.refused: set[str] = set()

    def tell(self, row: Submission, event: Event) -> list[Effect]:
        after, effects = handle(row, event)
        assert saves_come_first(effects)
        if after is not row:
            assert effects[0] == SaveSubmission(after)
        self.rows[row.submission_id] = after
        return effects

    def accept(self, row: Submission) -> Accepted:
        message_id = MessageId(f"msg-{len(self.server)}")
        message_id = self.server.setdefault(row.submission_id, message_id)
        return Accepted(1.0, message_id, InboxId("inbox-1"), "conv-1", 1)

    @rule(lane=st.sampled_from(["agent:bob", "agent:eve"]))
    def submit(self, lane: str) -> None:
        new = replace(submission(len(self.rows), lane), attachment_id=self.lease)
        record, effects = admit(None, new, self.rows.values())
        assert kinds(effects) == "SaveSubmission"
        self.rows[record.submission_id] = record

    @rule(fate=st.sampled_from(["yes", "no", "lost before", "lost after", "wait"]))
    def send_all_heads(self, fate: str) -> None:
        for row in next_to_send(self.rows.values(), now=1e9):
            assert kinds(self.tell(row, Sent(1.0))) == "SaveSubmission Send"
            flying = self.rows[row.submission_id]
            if fate == "no" and row.submission_id not in self.server:
                self.refused.add(row.submission_id)
                self.tell(flying, SubmissionRefused(1.0, "inbox_full", "Full."))
            elif fate == "yes":
                self.tell(flying, self.accept(row))
            elif fate == "wait":
                self.tell(flying, RateLimited(1.0, 2.0))
            elif fate == "lost after":
                self.accept(row)
                self.tell(flying, ReplyLost(1.0))
            else:
                self.tell(flying, ReplyLost(1.0))

    @rule()
    def restart_while_sending(self) -> None:
        for row in next_to_send(self.rows.values(), now=1e9):
            self.tell(row, Sent(1.0))
        for row in list(self.rows.values()):
            self.tell(row, SubmissionRestarted(1.0))

    @rule()
    def the_lease_moves(self) -> None:
        old = self.lease
        self.lease = NEW_LEASE if old == OLD_LEASE else OLD_LEASE
        for row in list(self.rows.values()):
            self.tell(row, LeaseRefused(1.0, old))
        for row in list(self.rows.values()):
            self.tell(row, LeaseMoved(1.0, self.lease))

    @invariant()
    def what_is_accepted_is_at_the_server_once(self) -> None:
        for row in self.rows.values():
            if row.state is SubmissionState.ACCEPTED:
                assert self.server[row.submission_id] == row.message_id
            assert (row.state == "refused") == (row.submission_id in self.refused)
            assert row.attachment_id == self.lease

    @invariant()
    def each_lane_arrives_in_order(self) -> None:
        for lane in ("agent:bob", "agent:eve"):
            arrived = [
                self.rows[key].number
                for key in self.server
                if self.rows[key].lane == lane
            ]
            assert arrived == sorted(arrived)

    def teardown(self) -> None:
        """Whatever happened, a good link brings the rest to the server."""
        for _ in self.rows:
            self.send_all_heads("yes")
        assert set(self.rows) == set(self.server) | self.refused


OutboxMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, derandomize=True
)
TestOutboxMachine = OutboxMachine.TestCase
