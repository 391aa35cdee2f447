"""agy's hooks, answers and processes, as published reports show them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent, HookInput
from bridge.errors import Invalid, Refused
from bridge.providers import agy
from tests.providers.captured import captured, process, stdin

STOP = "agy/stop"


def read(name: str, **changes: object) -> HookInput:
    return agy.read_hook("Stop", stdin(name, **changes))


def test_the_line_names_the_event_since_the_input_does_not() -> None:
    assert read(STOP).event is HookEvent.TURN_ENDED
    before = agy.read_hook("PreInvocation", stdin("agy/pre_invocation"))
    assert before.event is HookEvent.TOOL_ENDED
    assert agy.read_hook("PreToolUse", stdin(STOP)).event is HookEvent.OTHER


def test_an_event_names_its_conversation_and_folder() -> None:
    heard = read(STOP)

    assert heard.session_id == captured(STOP)["conversationId"]
    assert heard.folder == "/home/user/project"
    assert (heard.prompt, heard.continuations) == ("", None)


@pytest.mark.parametrize("reason", ["", "NO_TOOL_CALL", "model_stop", None])
def test_a_turn_that_the_model_ended_may_drain(reason: str | None) -> None:
    assert read(STOP, terminationReason=reason).may_drain


@pytest.mark.parametrize(
    "changes",
    [
        {"terminationReason": "USER_CANCELED"},
        {"terminationReason": "ERROR"},
        {"terminationReason": "MAX_STEPS"},
        {"fullyIdle": False},
        {"fullyIdle": None},
    ],
)
def test_a_turn_that_ended_otherwise_may_not(changes: dict[str, object]) -> None:
    assert not read(STOP, **changes).may_drain
    assert not read("agy/stop_background").may_drain


@pytest.mark.parametrize(
    "changes",
    [
        {"conversationId": None},
        {"conversationId": ""},
        {"conversationId": "a/b"},
        {"fullyIdle": "yes"},
        {"terminationReason": 3},
        {"workspacePaths": ["relative"]},
        {"workspacePaths": [7]},
    ],
)
def test_a_stop_with_a_wrong_field_is_invalid(changes: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        read(STOP, **changes)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_invalid(content: bytes) -> None:
    try:
        heard = agy.read_hook("Stop", content)
    except Invalid:
        return

    assert heard.session_id


@given(
    st.none() | st.booleans() | st.integers(),
    st.none() | st.text(max_size=12) | st.sampled_from(["NO_TOOL_CALL", "model_stop"]),
)
def test_nothing_drains_but_an_idle_turn_that_ended_by_itself(
    idle: object, reason: str | None
) -> None:
    try:
        heard = read(STOP, fullyIdle=idle, terminationReason=reason)
    except Invalid:
        return

    by_itself = reason in (None, "", "NO_TOOL_CALL", "model_stop")
    assert heard.may_drain == (idle is True and by_itself)


@given(st.text(max_size=300))
def test_an_offer_goes_on_with_the_turn(text: str) -> None:
    said = agy.print_offer(HookEvent.TURN_ENDED, text)

    assert (said.exit, said.stream) == (0, "stdout")
    assert json.loads(said.text) == {"decision": "continue", "reason": text}


def test_there_is_json_even_for_nothing() -> None:
    assert agy.NOTHING.text == b"{}"


def test_nothing_is_printed_at_any_other_event() -> None:
    for event in set(HookEvent) - {HookEvent.TURN_ENDED}:
        with pytest.raises(ValueError, match="no offer"):
            agy.print_offer(event, "x")
    for event in HookEvent:
        with pytest.raises(ValueError, match="no command"):
            agy.print_block(event, "x")
        assert agy.print_person_line(event, "x") is None


def test_its_program_is_known_by_name_and_command() -> None:
    assert agy.is_program(process("/home/user/.local/bin/agy", "agy"))
    assert agy.is_program(process("", "agy", name="agy"))
    assert not agy.is_program(process("/home/user/.local/bin/agy", "agentapi"))
    assert not agy.is_program(process("/usr/bin/bash", "agy"))
    assert not agy.is_program(process("", "bash", name="agy"))


def test_a_shell_names_its_conversation() -> None:
    name = "ANTIGRAVITY_CONVERSATION_ID"

    assert agy.session_of_environment({name: "fa76bcf6"}) == "fa76bcf6"
    assert agy.session_of_environment({}) is None
    assert agy.thread_of_call({}) is None
    with pytest.raises(Refused):
        agy.session_of_environment({name: "a b"})
