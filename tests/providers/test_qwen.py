"""Qwen Code's hooks, answers and processes, as captured and as invented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.errors import Invalid, Refused
from bridge.providers import qwen
from tests.providers.captured import captured, event_word, process, stdin


def read(name: str, **changes: object) -> HookInput:
    return qwen.read_hook(event_word(name), stdin(name, **changes))


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("qwen/session_start", HookEvent.SESSION_STARTED),
        ("qwen/user_prompt_submit", HookEvent.PROMPT),
        ("qwen/post_tool_use", HookEvent.TOOL_ENDED),
        ("qwen/stop", HookEvent.TURN_ENDED),
        ("qwen/session_end", HookEvent.SESSION_ENDED),
        ("qwen/notification", HookEvent.OTHER),
        ("qwen/user_prompt_submit_after_tool", HookEvent.OTHER),
    ],
)
def test_each_captured_event_has_its_meaning(name: str, event: HookEvent) -> None:
    heard = read(name)

    assert (heard.provider, heard.event) == ("qwen", event)
    assert heard.session_id == captured(name)["session_id"]
    assert heard.turn_id == captured(name).get("prompt_id", "")
    assert not heard.is_subagent


def test_a_stop_says_whether_a_hook_continued_the_turn() -> None:
    assert not read("qwen/stop").is_continuation
    assert read("qwen/stop_active").is_continuation


def test_a_subagents_tool_and_stop_are_marked() -> None:
    assert read("qwen/post_tool_use_subagent").is_subagent
    assert read("qwen/subagent_stop").is_subagent
    assert read("qwen/subagent_stop", agent_id=None).event is HookEvent.OTHER


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": None},
        {"session_id": "a#b"},
        {"prompt_id": "a b"},
        {"stop_hook_active": None},
        {"hook_event_name": "SubagentStop"},
        {"cwd": 1},
    ],
)
def test_a_hook_that_says_something_else_is_not_read(
    changes: dict[str, object],
) -> None:
    with pytest.raises(Invalid):
        qwen.read_hook("Stop", stdin("qwen/stop", **changes))


@given(st.sampled_from(["UserPromptSubmit", "Stop"]), st.binary(max_size=300))
def test_whatever_bytes_come_are_heard_or_refused(word: str, said: bytes) -> None:
    try:
        qwen.read_hook(word, said)
    except Invalid as error:
        assert error.code == "hook_unreadable"  # noqa: PT017 - either way is right


@given(st.text(max_size=300))
def test_an_offer_is_the_next_prompt_or_context_and_ascii(text: str) -> None:
    ended = qwen.print_offer(HookEvent.TURN_ENDED, text).text

    assert json.loads(ended) == {"decision": "block", "reason": text}
    assert ended.isascii()
    for event, word in (
        (HookEvent.PROMPT, "UserPromptSubmit"),
        (HookEvent.TOOL_ENDED, "PostToolUse"),
    ):
        assert json.loads(qwen.print_offer(event, text).text) == {
            "hookSpecificOutput": {"hookEventName": word, "additionalContext": text}
        }


def test_nothing_is_printed_at_any_other_event() -> None:
    for event in set(HookEvent) - qwen.OFFERS_AT:
        with pytest.raises(ValueError, match="no offer"):
            qwen.print_offer(event, "x")
    for event in set(HookEvent) - {HookEvent.PROMPT}:
        with pytest.raises(ValueError, match="no command"):
            qwen.print_block(event, "x")
    for event in HookEvent:
        assert qwen.print_person_line(event, "x") is None


NODE = "/usr/bin/node"
PACKAGE = "/usr/lib/node_modules/@qwen-code/qwen-code"


@pytest.mark.parametrize(
    "facts",
    [
        process(NODE, NODE, f"{PACKAGE}/cli-entry.js", "--yolo"),
        process(NODE, NODE, "--expose-gc", f"{PACKAGE}/cli.js"),
        process(NODE, "node", "/usr/local/bin/qwen"),
    ],
)
def test_qwens_processes_are_known(facts: ProcessFacts) -> None:
    assert qwen.is_program(facts)


@pytest.mark.parametrize(
    "facts",
    [
        process(NODE, NODE, "/work/cli.js"),
        process("/usr/bin/qwen", "qwen"),
        process(
            NODE, NODE, "/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js"
        ),
    ],
)
def test_other_processes_are_not_qwen(facts: ProcessFacts) -> None:
    assert not qwen.is_program(facts)


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("--input-file", "/run/in"), "/run/in"),
        (("--input-file=/run/in",), "/run/in"),
        ((), None),
        (("--input-file",), None),
        (("--input-file", "in"), None),
        (("--input-file", "/a", "--input-file=/b"), None),
        (("--", "--input-file", "/run/in"), None),
        (("-p", "--input-file-is", "/run/in"), None),
    ],
)
def test_the_input_file_is_the_one_absolute_path_of_its_command_line(
    words: tuple[str, ...], path: str | None
) -> None:
    facts = process(NODE, NODE, f"{PACKAGE}/cli.js", *words)

    assert qwen.input_file(facts) == (None if path is None else Path(path))


def test_the_environment_of_a_command_names_its_chat() -> None:
    assert qwen.session_of_environment({"QWEN_CODE": "1"}) is None
    assert qwen.session_of_environment({"QWEN_CODE_SESSION_ID": "abc-1"}) == "abc-1"
    with pytest.raises(Refused):
        qwen.session_of_environment({"QWEN_CODE_SESSION_ID": "a b"})
