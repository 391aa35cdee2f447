"""Codex's hooks, answers, processes and calls, as captured and as invented."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.errors import Invalid, Refused
from bridge.providers import codex
from tests.providers.captured import captured, event_word, process, stdin

TURN = "x-codex-turn-metadata"
ENVIRONMENT = "codex/shell_environment"


def read(name: str, **changes: object) -> HookInput:
    return codex.read_hook(event_word(name), stdin(name, **changes))


# ---- what hooks say -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("codex/session_start_startup", HookEvent.SESSION_STARTED),
        ("codex/session_start_clear", HookEvent.SESSION_STARTED),
        ("codex/user_prompt_submit_exec", HookEvent.PROMPT),
        ("codex/stop_first", HookEvent.TURN_ENDED),
        ("codex/session_end", HookEvent.SESSION_ENDED),
        ("codex/interrupt", HookEvent.OTHER),
        ("codex/subagent_stop", HookEvent.OTHER),
    ],
)
def test_each_captured_event_has_its_meaning(name: str, event: HookEvent) -> None:
    heard = read(name)

    assert heard.provider == "codex"
    assert heard.event is event
    assert heard.session_id == captured(name)["session_id"]
    assert heard.turn_id == captured(name).get("turn_id", "")
    assert not heard.person_typed


def test_a_stop_says_whether_a_hook_continued_the_turn() -> None:
    assert not read("codex/stop_first").is_continuation
    assert read("codex/stop_active").is_continuation


def test_a_typed_command_comes_as_a_prompt() -> None:
    assert (
        read("codex/user_prompt_submit_tui_attach").prompt == "/agentworks attach one"
    )


def test_a_subagents_prompt_and_stop_are_marked() -> None:
    prompt = read("codex/user_prompt_submit_subagent")

    assert (prompt.event, prompt.is_subagent) == (HookEvent.PROMPT, True)
    assert read("codex/subagent_stop").is_subagent
    assert read("codex/subagent_stop", agent_id=None).event is HookEvent.OTHER


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": None},
        {"session_id": "a b"},
        {"stop_hook_active": None},
        {"hook_event_name": "UserPromptSubmit"},
        {"turn_id": 7},
        {"cwd": 1},
    ],
)
def test_a_stop_with_a_wrong_field_is_invalid(changes: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        codex.read_hook("Stop", stdin("codex/stop_first", **changes))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_invalid(content: bytes) -> None:
    try:
        heard = codex.read_hook("Stop", content)
    except Invalid:
        return

    assert heard.session_id


# ---- what is printed ----------------------------------------------------------------


@given(st.text(max_size=300))
def test_answers_have_the_two_known_fields_and_no_other(text: str) -> None:
    """One field more and Codex drops the whole answer."""
    expected = {"decision": "block", "reason": text}

    assert json.loads(codex.print_offer(HookEvent.TURN_ENDED, text).text) == expected
    assert json.loads(codex.print_block(HookEvent.PROMPT, text).text) == expected


@pytest.mark.parametrize(
    ("event", "word"),
    [(HookEvent.PROMPT, "UserPromptSubmit"), (HookEvent.TOOL_ENDED, "PostToolUse")],
)
def test_before_a_turns_end_an_offer_is_context(event: HookEvent, word: str) -> None:
    assert json.loads(codex.print_offer(event, "x").text) == {
        "hookSpecificOutput": {"hookEventName": word, "additionalContext": "x"}
    }


def test_nothing_is_printed_at_any_other_event() -> None:
    for event in set(HookEvent) - codex.OFFERS_AT:
        with pytest.raises(ValueError, match="no offer"):
            codex.print_offer(event, "x")
    for event in set(HookEvent) - {HookEvent.PROMPT}:
        with pytest.raises(ValueError, match="no command"):
            codex.print_block(event, "x")
    for event in HookEvent:
        assert codex.print_person_line(event, "x") is None


def test_the_budget_counts_the_bytes_of_what_codex_writes() -> None:
    assert codex.BUDGET.fits("x" * 9_500)
    assert not codex.BUDGET.fits("x" * 9_501)
    assert not codex.BUDGET.fits("語" * 3_167)
    assert not codex.BUDGET.fits("&" * 1_901)


# ---- which process it is ------------------------------------------------------------

NATIVE = "/opt/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
DAEMON = (
    "/home/user/.codex/packages/app-server-daemon/releases/0.171.0/bin/codex",
    "app-server",
    "--listen",
    "unix://",
    "--managed-daemon",
)


@pytest.mark.parametrize(
    "facts",
    [
        process(NATIVE, NATIVE, "exec", "hello"),
        process(NATIVE, "codex", "--no-daemon"),
        process(DAEMON[0], *DAEMON),
        process(f"{NATIVE} (deleted)", "codex", name="codex"),
        process("/opt/codex-x86_64-unknown-linux-musl", "codex"),
        process("/opt/codex-aarch64-apple-darwin", "/opt/codex-aarch64-apple-darwin"),
        process("", "codex", name="codex"),
    ],
    ids=lambda facts: " ".join((facts.program, *facts.arguments)),
)
def test_a_codex_process_is_recognised(facts: ProcessFacts) -> None:
    assert codex.is_program(facts)


@pytest.mark.parametrize(
    "facts",
    [
        # Below bwrap its kernel name is even `codex`; only argv[0] tells.
        process(NATIVE, "codex-linux-sandbox", "--command-cwd", "/", name="codex"),
        process(NATIVE, "/tmp/arg0/codex-linux-sandbox", name="codex-linux-san"),
        process(NATIVE, "apply_patch", name="codex"),
        process("/usr/bin/node", "node", "/usr/lib/@openai/codex/bin/codex.js"),
        process("/usr/bin/node", "codex", name="codex"),
        process("/usr/bin/bash", "codex"),
        process("/opt/codex-tools", "codex-tools"),
        process("", "bash", name="codex"),
        process("", "codex", name="bash"),
        process("/opt/claude", "claude"),
    ],
    ids=lambda facts: " ".join((facts.program, *facts.arguments)),
)
def test_another_process_is_not_taken_for_codex(facts: ProcessFacts) -> None:
    assert not codex.is_program(facts)


# ---- which thread calls --------------------------------------------------------------


def call(**changes: object) -> dict[str, Any]:
    """A root chat's `_meta`; changes named turn_X are made in the turn's fields."""
    meta = copy.deepcopy(captured("codex/tool_call"))
    for name, value in changes.items():
        place = meta[TURN] if name.startswith("turn_") else meta
        place[name.removeprefix("turn_")] = value
    return meta


THREAD = captured("codex/tool_call")["threadId"]


def test_a_root_chats_call_names_its_thread() -> None:
    assert codex.thread_of_call(call()) == THREAD


def test_the_turn_may_come_as_json_text() -> None:
    meta = call()
    meta[TURN] = json.dumps(meta[TURN])

    assert codex.thread_of_call(meta) == THREAD


def test_the_ids_beside_the_turn_may_be_missing() -> None:
    assert codex.thread_of_call({TURN: call()[TURN]}) == THREAD


@pytest.mark.parametrize(
    "meta",
    [
        captured("codex/tool_call_subagent"),
        call(turn_thread_source="subagent"),
        call(turn_parent_thread_id="x"),
        call(turn_subagent_kind="thread_spawn"),
    ],
    ids=["captured", "source", "parent", "kind"],
)
def test_a_subagents_call_is_refused(meta: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        codex.thread_of_call(meta)

    assert refused.value.code == "subagent"


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {TURN: None},
        {TURN: []},
        {TURN: "{"},
        {TURN: '{"thread_id":"\ud800"}'},
        {TURN: {"thread_id": THREAD}},
        {TURN: {"session_id": THREAD}},
        {TURN: {"session_id": "", "thread_id": ""}},
        {TURN: {"session_id": 1, "thread_id": 1}},
        call(turn_session_id="another"),
        call(turn_thread_id="another"),
        call(threadId="another"),
        call(sessionId="another"),
        call(threadId=7),
    ],
    ids=lambda meta: json.dumps(meta)[:60],
)
def test_a_call_that_does_not_name_one_thread_is_refused(meta: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        codex.thread_of_call(meta)

    assert refused.value.code == "session_unclear"
    assert refused.value.hint


def test_a_shell_of_the_chat_names_its_thread() -> None:
    environment = captured(ENVIRONMENT)

    assert codex.session_of_environment(environment) == environment["CODEX_THREAD_ID"]
    assert codex.session_of_environment({"HOME": "/"}) is None


def test_a_shell_of_a_subagent_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        codex.session_of_environment(captured("codex/shell_environment_subagent"))

    assert refused.value.code == "subagent"


@pytest.mark.parametrize(
    "environment",
    [
        {"CODEX_THREAD_ID": "a"},
        {"CODEX_SESSION_ID": "a"},
        {"CODEX_THREAD_ID": "a b", "CODEX_SESSION_ID": "a b"},
    ],
)
def test_half_a_hint_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        codex.session_of_environment(environment)

    assert refused.value.code == "session_unclear"
