"""Gemini CLI's hooks, answers and processes, as captured and as invented."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.errors import Invalid, Refused
from bridge.providers import gemini
from tests.providers.captured import captured, event_word, process, stdin


def read(name: str, **changes: object) -> HookInput:
    return gemini.read_hook(event_word(name), stdin(name, **changes))


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("gemini/session_start", HookEvent.SESSION_STARTED),
        ("gemini/before_agent", HookEvent.PROMPT),
        ("gemini/after_agent", HookEvent.TURN_ENDED),
        ("gemini/session_end", HookEvent.SESSION_ENDED),
        ("gemini/after_tool", HookEvent.OTHER),
        ("gemini/pre_compress", HookEvent.OTHER),
    ],
)
def test_each_captured_event_has_its_meaning(name: str, event: HookEvent) -> None:
    heard = read(name)

    assert (heard.provider, heard.event) == ("gemini", event)
    assert heard.session_id == captured(name)["session_id"]
    assert heard.may_drain
    assert not heard.person_typed


def test_a_turns_end_says_whether_a_hook_continued_the_turn() -> None:
    assert not read("gemini/after_agent").is_continuation
    assert read("gemini/after_agent_active").is_continuation


def test_a_cancelled_turn_is_offered_nothing_since_the_host_would_drop_it() -> None:
    assert not read("gemini/after_agent_cancelled").may_drain


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": None},
        {"session_id": "a b"},
        {"stop_hook_active": None},
        {"hook_event_name": "BeforeAgent"},
        {"prompt_response": 7},
        {"cwd": "project"},
    ],
)
def test_a_hook_that_says_something_else_is_not_read(
    changes: dict[str, object],
) -> None:
    with pytest.raises(Invalid):
        gemini.read_hook("AfterAgent", stdin("gemini/after_agent", **changes))


@given(st.sampled_from(["BeforeAgent", "AfterAgent"]), st.binary(max_size=300))
def test_whatever_bytes_come_are_heard_or_refused(word: str, said: bytes) -> None:
    try:
        gemini.read_hook(word, said)
    except Invalid as error:
        assert error.code == "hook_unreadable"  # noqa: PT017 - either way is right


@given(st.text(max_size=300))
def test_an_offer_is_the_next_prompt_or_context_and_ascii(text: str) -> None:
    """The host decodes each piece that it reads by itself."""
    ended = gemini.print_offer(HookEvent.TURN_ENDED, text).text
    prompted = gemini.print_offer(HookEvent.PROMPT, text).text

    said = json.loads(ended)
    assert (said["decision"], said["reason"]) == ("deny", text)
    assert text not in said["systemMessage"] or len(text) < len(said["systemMessage"])
    assert json.loads(prompted) == {
        "hookSpecificOutput": {
            "hookEventName": "BeforeAgent",
            "additionalContext": text,
        }
    }
    assert ended.isascii()
    assert prompted.isascii()


def test_a_typed_command_is_kept_from_the_model() -> None:
    said = json.loads(gemini.print_block(HookEvent.PROMPT, "Attached.").text)

    assert said == {"decision": "deny", "reason": "Attached."}


def test_nothing_is_printed_at_any_other_event() -> None:
    for event in set(HookEvent) - gemini.OFFERS_AT:
        with pytest.raises(ValueError, match="no offer"):
            gemini.print_offer(event, "x")
    for event in set(HookEvent) - {HookEvent.PROMPT}:
        with pytest.raises(ValueError, match="no command"):
            gemini.print_block(event, "x")
    for event in set(HookEvent) - {HookEvent.SESSION_STARTED}:
        assert gemini.print_person_line(event, "x") is None


NODE = "/usr/bin/node"
SCRIPT = "/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js"


@pytest.mark.parametrize(
    "facts",
    [
        process(NODE, NODE, SCRIPT, "-m", "x"),
        process(NODE, NODE, "--max-old-space-size=12052", SCRIPT),
        process(NODE, "node", "/usr/local/bin/gemini"),
        process("", "node", SCRIPT, name="MainThread"),
    ],
)
def test_geminis_two_processes_are_known(facts: ProcessFacts) -> None:
    assert gemini.is_program(facts)


@pytest.mark.parametrize(
    "facts",
    [
        process(NODE, NODE, "/work/gemini.test.js"),
        process(NODE, NODE),
        process("/usr/bin/gemini", "gemini"),
        process("/bin/bash", "bash", "-c", SCRIPT),
        process("", "vi", SCRIPT),
    ],
)
def test_other_processes_are_not_gemini(facts: ProcessFacts) -> None:
    assert not gemini.is_program(facts)


def test_the_environment_names_a_chat_in_hooks_only() -> None:
    assert gemini.session_of_environment({"GEMINI_CLI": "1"}) is None
    assert gemini.session_of_environment({"GEMINI_SESSION_ID": "abc-1"}) == "abc-1"
    assert gemini.thread_of_call({"progressToken": 1}) is None
    with pytest.raises(Refused):
        gemini.session_of_environment({"GEMINI_SESSION_ID": "a b"})
