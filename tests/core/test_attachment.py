"""The attachment table: who may attach, what an end takes with it, crashes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from bridge.core.attachment import TABLE, handle
from bridge.core.effects import (
    CloseStream,
    Effect,
    EndLease,
    EraseTokens,
    ForgetAttachment,
    OpenStream,
    OrphanSubmissions,
    Refuse,
    Save,
    SaveAttachment,
    TellPerson,
)
from bridge.core.events import (
    BridgeStarted,
    BridgeStopped,
    Confirmed,
    Detach,
    DetachFinished,
    Event,
    OwnAttach,
    PersonAttach,
    ProcessGone,
    RouteFound,
    ServerHeld,
    ServerReplaced,
    ServerRevoked,
    SessionEnded,
    TokenRefused,
    Unregistered,
)
from bridge.core.ids import AgentId, AttachmentId, SessionId
from bridge.core.records import Attachment, AttachmentState, ProcessKey
from tests.fakes.effects import kinds

PROCESS = ProcessKey("boot", 10, 100)
OTHER_PROCESS = ProcessKey("boot", 11, 200)
FRESH = Attachment(
    AttachmentId("att-1"),
    AgentId("agent-1"),
    "bob",
    "claude",
    SessionId("session-1"),
    PROCESS,
    watermark=9,
    setup_at=1.0,
    guidance_at=2.0,
)
PERSON = PersonAttach(5.0, OTHER_PROCESS)
OWN = OwnAttach(5.0, OTHER_PROCESS)
EVENTS: list[Event] = [
    PERSON,
    OWN,
    SessionEnded(5.0, "clear"),
    ProcessGone(5.0),
    ServerReplaced(5.0),
    ServerRevoked(5.0),
    ServerHeld(5.0),
    Confirmed(5.0),
    BridgeStopped(5.0),
    BridgeStarted(5.0, verified=True),
    Detach(5.0),
    DetachFinished(5.0),
    Unregistered(5.0),
    TokenRefused(5.0),
    RouteFound(5.0, "codex_app_server"),
]
ALL_EVENTS = [*EVENTS, BridgeStarted(5.0, verified=False)]

OVER = "SaveAttachment CloseStream EndLease OrphanSubmissions EraseTokens TellPerson"
ATTACH = "attached: SaveAttachment OpenStream"
HOLD = "held: SaveAttachment CloseStream TellPerson"
OFFLINE = "offline: SaveAttachment CloseStream TellServerOffline"
ENDS = {
    "ServerReplaced": f"replaced: {OVER}",
    "ServerRevoked": f"revoked: {OVER}",
    "Unregistered": f"revoked: {OVER}",
    "Detach": "detaching: SaveAttachment CloseStream EndLease OrphanSubmissions"
    " TellServerDetached",
}
ENDED = {
    "PersonAttach": ATTACH,
    "OwnAttach": "Refuse",
    "BridgeStarted": "EndLease OrphanSubmissions EraseTokens",
    "Detach": "detached: OrphanSubmissions EraseTokens ForgetAttachment",
}
FORGET = "detached: EraseTokens ForgetAttachment"
EXPECTED: dict[str, dict[str, str]] = {
    "new": {"PersonAttach": ATTACH, "OwnAttach": ATTACH, "ServerHeld": HOLD},
    "attached": {
        "PersonAttach": ATTACH,
        "OwnAttach": ATTACH,
        "SessionEnded": OFFLINE,
        "ProcessGone": OFFLINE,
        "ServerHeld": HOLD,
        "BridgeStopped": "CloseStream",
        "BridgeStarted": "OpenStream",
        "TokenRefused": "offline: SaveAttachment CloseStream EraseTokens TellPerson",
        "RouteFound": "attached: SaveAttachment",
        **ENDS,
    },
    "offline": {
        "PersonAttach": ATTACH,
        "OwnAttach": ATTACH,
        "ServerHeld": HOLD,
        "TokenRefused": "EraseTokens TellPerson",
        **ENDS,
    },
    "held": {
        "PersonAttach": "held: SaveAttachment",
        "OwnAttach": "Refuse",
        "SessionEnded": "held: SaveAttachment",
        "ProcessGone": "held: SaveAttachment",
        "Confirmed": ATTACH,
        "TokenRefused": "EraseTokens TellPerson",
        **ENDS,
    },
    "replaced": ENDED,
    "revoked": ENDED,
    "detaching": {
        "PersonAttach": "Refuse",
        "OwnAttach": "Refuse",
        "ServerReplaced": "replaced: SaveAttachment EraseTokens",
        "ServerRevoked": FORGET,
        "Unregistered": FORGET,
        "DetachFinished": FORGET,
        "BridgeStarted": "EndLease OrphanSubmissions TellServerDetached",
        "Detach": "TellServerDetached",
    },
    "detached": {"PersonAttach": "Refuse", "OwnAttach": "Refuse"},
}


def in_state(state: AttachmentState) -> Attachment:
    return replace(FRESH, state=state)


ATTACHED = in_state(AttachmentState.ATTACHED)


def after(record: Attachment, *events: Event) -> Attachment:
    for event in events:
        record, _ = handle(record, event)
    return record


def test_every_state_has_a_rule_for_every_event() -> None:
    assert set(TABLE) == set(AttachmentState)
    for row in TABLE.values():
        assert set(row) == {type(event) for event in EVENTS}


@pytest.mark.parametrize(
    ("state", "event"),
    list(itertools.product(AttachmentState, EVENTS)),
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else value,
)
def test_each_pair_does_what_the_design_says(
    state: AttachmentState, event: Event
) -> None:
    before = in_state(state)

    record, effects = handle(before, event)

    expected = EXPECTED[state].get(type(event).__name__, "")
    moved, _, wanted = expected.rpartition(": ")
    assert record.state == (moved or state)
    assert kinds(effects) == wanted
    assert (record is before) == (not moved)
    if "SaveAttachment" in wanted:
        assert effects[0] == SaveAttachment(record)


@pytest.mark.parametrize("state", list(AttachmentState))
@pytest.mark.parametrize("event", ALL_EVENTS, ids=lambda event: type(event).__name__)
def test_only_an_attach_or_a_live_confirmation_leads_to_attached(
    state: AttachmentState, event: Event
) -> None:
    record, effects = handle(in_state(state), event)

    if state != "attached" and record.state == "attached":
        assert isinstance(event, PersonAttach | OwnAttach) or state == "held"
    if any(isinstance(effect, OpenStream) for effect in effects):
        assert record.state == "attached"


def test_an_agent_reconnects_only_what_needs_no_person() -> None:
    for state in AttachmentState:
        record, effects = handle(in_state(state), OWN)
        if state in ("new", "attached", "offline"):
            assert record.state == "attached"
        else:
            (refuse,) = effects
            assert isinstance(refuse, Refuse)
            assert refuse.code == state
            assert len(refuse.message) > 20


def test_who_made_an_attachment_is_remembered_from_the_first_attach() -> None:
    assert after(FRESH, PERSON).made_by == "person"
    assert after(FRESH, OWN).made_by == "own"
    assert after(FRESH, OWN, SessionEnded(6.0), PERSON).made_by == "own"


def test_offline_keeps_identity_and_times_and_loses_only_the_route() -> None:
    attached = replace(ATTACHED, native_route="codex_app_server")

    offline = after(attached, SessionEnded(8.0), ProcessGone(9.0))

    expected = replace(ATTACHED, state=AttachmentState.OFFLINE, offline_since=8.0)
    assert offline == expected
    assert after(offline, PERSON) == replace(ATTACHED, process_key=OTHER_PROCESS)


def test_attaching_again_keeps_the_route_of_the_same_process() -> None:
    routed = after(ATTACHED, RouteFound(6.0, "codex_app_server"))
    assert routed.native_route == "codex_app_server"

    assert after(routed, PersonAttach(7.0, PROCESS)) == routed
    assert after(routed, PERSON).native_route == ""


def test_finding_the_route_that_is_known_changes_nothing() -> None:
    routed = after(ATTACHED, RouteFound(6.0, "codex_app_server"))

    assert handle(routed, RouteFound(7.0, "codex_app_server")) == (routed, [])


def test_a_start_restores_only_what_was_attached_and_is_verified() -> None:
    stopped = after(ATTACHED, BridgeStopped(6.0))
    assert stopped is ATTACHED

    assert after(stopped, BridgeStarted(7.0, verified=True)) is ATTACHED
    offline = after(stopped, BridgeStarted(7.0, verified=False))
    assert offline.state == "offline"
    assert offline.offline_since == 7.0


@pytest.mark.parametrize(
    "gone", [SessionEnded(6.0), ProcessGone(6.0), BridgeStarted(6.0, verified=False)]
)
def test_a_confirmation_does_not_revive_a_session_that_ended_meanwhile(
    gone: Event,
) -> None:
    held = after(ATTACHED, ServerHeld(5.5), gone, SessionEnded(6.5))
    assert held.offline_since == 6.0

    record, effects = handle(held, Confirmed(7.0))

    assert record.state == "offline"
    assert kinds(effects) == "SaveAttachment"


def test_a_persons_attach_and_the_servers_yes_end_the_hold() -> None:
    held = after(ATTACHED, ServerHeld(5.0), ProcessGone(6.0))

    record = after(held, PERSON, Confirmed(7.0))

    assert record == replace(ATTACHED, process_key=OTHER_PROCESS)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (ServerReplaced(6.0), "replaced"),
        (ServerRevoked(6.0), "revoked"),
        (Unregistered(6.0), "unregistered"),
        (Detach(6.0), "detached"),
    ],
)
def test_the_end_of_a_lease_says_why(event: Event, reason: str) -> None:
    record, effects = handle(ATTACHED, event)

    assert EndLease(record, reason) in effects
    if reason != "detached":
        assert effects[-1] == TellPerson(reason, record)
    assert record.offline_since == 6.0


def test_a_refused_token_is_told_as_that() -> None:
    record, effects = handle(ATTACHED, TokenRefused(6.0))

    assert effects[-1] == TellPerson("token_refused", record)


def test_tokens_are_erased_before_the_attachment_is_forgotten() -> None:
    detaching = after(ATTACHED, Detach(6.0))

    record, effects = handle(detaching, DetachFinished(7.0))

    assert effects == [EraseTokens(record), ForgetAttachment(record.attachment_id)]


class AttachmentMachine(RuleBasedStateMachine):
    """Lets a world of streams, tokens and rows follow, and dies anywhere in it."""

    def __init__(self) -> None:
        super().__init__()
        self.record = self.saved = FRESH
        self.is_streaming = self.is_approved = False
        self.has_tokens = self.has_pending = False

    def follow(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SaveAttachment(attachment):
                    self.saved = attachment
                case OpenStream():
                    assert self.saved.state == "attached"
                    self.is_streaming = self.has_pending = self.has_tokens = True
                case CloseStream():
                    self.is_streaming = False
                case EndLease() | OrphanSubmissions():
                    self.has_pending = False
                case EraseTokens():
                    self.has_tokens = False
                case ForgetAttachment():
                    assert not self.has_tokens
                    self.saved = FRESH

    @rule(event=st.sampled_from(ALL_EVENTS[:8] + ALL_EVENTS[10:15]))
    def happen(self, event: Event) -> None:
        self.record, effects = handle(self.record, event)
        if self.record.state not in ("new", "detached"):
            assert not any(isinstance(effect, Save) for effect in effects[1:])
        self.follow(effects)
        self.judge(event)

    def judge(self, event: Event) -> None:
        """The oracle: is the session's place in the chat the person's wish?"""
        if isinstance(event, PersonAttach):
            self.is_approved = True
        elif isinstance(event, OwnAttach):
            self.is_approved = self.is_approved or self.record.state == "attached"
        elif not isinstance(event, Confirmed | ServerHeld | RouteFound):
            self.is_approved = self.is_approved and self.record.state == "attached"

    @rule(verified=st.booleans())
    def stop_and_start(self, verified: bool) -> None:
        for event in (BridgeStopped(6.0), BridgeStarted(7.0, verified)):
            self.record, effects = handle(self.record, event)
            self.follow(effects)
        self.is_approved = self.is_approved and verified

    @rule(
        event=st.sampled_from(ALL_EVENTS[:15]),
        reached=st.integers(0, 6),
        verified=st.booleans(),
    )
    def die_between_effects(self, event: Event, reached: int, verified: bool) -> None:
        _, effects = handle(self.record, event)
        self.follow(effects[:reached])
        self.is_streaming = False
        self.record, effects = handle(self.saved, BridgeStarted(7.0, verified))
        self.follow(effects)
        self.judge(event)
        self.is_approved = self.is_approved and verified

    @invariant()
    def attached_means_that_somebody_wished_it(self) -> None:
        if self.record.state == "attached":
            assert self.is_approved
            assert self.record.offline_since is None
        assert self.is_streaming == (self.record.state == "attached")

    @invariant()
    def whatever_dies_an_ended_lease_keeps_nothing(self) -> None:
        if self.record.state in ("replaced", "revoked"):
            assert not self.has_tokens
        if self.record.state in ("replaced", "revoked", "detaching"):
            assert not self.has_pending


AttachmentMachine.TestCase.settings = settings(
    max_examples=50, stateful_step_count=25, deadline=None, derandomize=True
)
TestAttachmentMachine = AttachmentMachine.TestCase
