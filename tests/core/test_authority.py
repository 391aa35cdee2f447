"""Each kind of caller reaches its list of verbs and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.authority import (
    ALL,
    Refusal,
    may,
    may_attach,
    may_detach,
    may_take_name,
)
from bridge.core.caller import (
    Caller,
    ChildCaller,
    HookCaller,
    Nobody,
    OwnSession,
    Person,
    ProcessFacts,
)
from tests.core.golden_text import golden

PROCESS = ProcessFacts(pid=42, parent_pid=1, start=7, name="claude", uid=1000)
HOOK = HookCaller("claude", PROCESS)
CHILD = ChildCaller("claude", PROCESS)
OWN = OwnSession("claude", PROCESS, "session")
PERSON = Person("bash 41")
NOBODY = Nobody("caller_unreadable", "The bridge cannot see it.", "Go outside.")
EVERYBODY: list[Caller] = [HOOK, CHILD, OWN, PERSON, NOBODY]


def reach(caller: Caller) -> set[str]:
    return {verb for verb in ALL if may(caller, verb) is None}


def test_what_each_kind_of_caller_can_reach() -> None:
    messages = {
        "session_send", "session_reply", "session_read", "session_ack",
        "session_peers", "session_purpose", "session_message_status",
    }  # fmt: skip
    assert reach(HOOK) == {"hello", "hook"}
    assert reach(CHILD) == {"hello"} | messages
    own = {"hello", "attach", "detach", "prepare", "agents", "status"}
    assert reach(OWN) == own | messages | {"session_watch"}
    assert reach(PERSON) == own | {
        "stop", "test_wake", "wake_progress",
        "messages_register", "messages_list", "messages_send",
        "messages_read", "messages_state", "messages_unregister",
    }  # fmt: skip
    assert reach(NOBODY) == {"hello"}


def test_no_tool_attaches_detaches_or_uses_the_persons_login() -> None:
    forbidden = {"attach", "detach", "stop", "prepare"} | {
        verb for verb in ALL if verb.startswith("messages_")
    }

    assert not reach(CHILD) & forbidden


@pytest.mark.parametrize("caller", EVERYBODY)
@given(verb=st.text() | st.sampled_from(sorted(ALL)))
def test_every_verb_has_an_answer_for_everybody(caller: Caller, verb: str) -> None:
    answer = may(caller, verb)

    assert (answer is None) == (verb in reach(caller))
    if answer is not None:
        assert answer.code
        assert answer.message
        assert answer.hint


def test_the_refusals_as_they_are_read() -> None:
    refusals = [
        may(OWN, "stop"),
        may(PERSON, "session_send"),
        may(PERSON, "dance"),
        may(NOBODY, "attach"),
        may_attach(OWN, session_id="another"),
        may_attach(OWN, confirm=True),
        may_attach(OWN, has_wishes=True),
        may_attach(OWN, is_account_wide=True),
        may_detach(OWN, "person", is_own=True),
        may_take_name(OWN, "carol", own_name="bob"),
        may_take_name(OWN, "carol", is_others=True),
    ]
    lines = [f"{r.code}: {r.message} {r.hint}" for r in refusals if r is not None]
    text = "\n".join(lines)

    assert len(lines) == len(refusals)
    assert golden("refusals_verbs", text) == text


# ---- attach, detach and names -----------------------------------------------------


@pytest.mark.parametrize(
    "overrides",
    [
        {"session_id": "x"},
        {"native_pid": 5},
        {"native_remote": "unix:///s"},
        {"provider": "codex"},
        {"confirm": True},
        {"has_wishes": True},
        {"is_account_wide": True},
    ],
)
def test_an_agent_chooses_no_session_process_way_or_confirmation(
    overrides: dict[str, str],
) -> None:
    assert isinstance(may_attach(OWN, **overrides), Refusal)  # type: ignore[arg-type]
    assert may_attach(PERSON, **overrides) is None  # type: ignore[arg-type]


def test_an_agent_may_attach_its_own_session() -> None:
    assert may_attach(OWN) is None
    assert may_attach(OWN, provider="claude") is None


@pytest.mark.parametrize("caller", [HOOK, CHILD, NOBODY])
def test_nobody_else_attaches_or_detaches(caller: Caller) -> None:
    assert may_attach(caller) is not None
    assert may_detach(caller, "own", is_own=True) is not None


@pytest.mark.parametrize(
    ("made_by", "is_own", "allowed"),
    [("own", True, True), ("person", True, False), ("own", False, False)],
)
def test_an_agent_detaches_only_what_it_attached_itself(
    made_by: str, is_own: bool, allowed: bool
) -> None:
    assert (may_detach(OWN, made_by, is_own) is None) is allowed
    assert may_detach(PERSON, made_by, is_own) is None


def test_an_agent_renames_and_moves_nothing() -> None:
    assert may_take_name(OWN, "bob") is None
    assert may_take_name(OWN, "BOB", own_name="bob") is None
    assert may_take_name(OWN, "carol", own_name="bob") is not None
    assert may_take_name(OWN, "carol", is_others=True) is not None
    assert may_take_name(PERSON, "carol", own_name="bob", is_others=True) is None
