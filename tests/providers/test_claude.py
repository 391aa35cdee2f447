"""Claude Code's hooks, answers, processes and hints, as captured and as invented."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Print
from bridge.errors import Invalid, Refused
from bridge.providers import claude
from tests.providers.captured import captured, event_word, process, stdin

STOP = "claude/stop_first"
EXPANSION = "claude/user_prompt_expansion"


def read(name: str, **changes: object) -> HookInput:
    return claude.read_hook(event_word(name), stdin(name, **changes))


def said(answer: Print) -> object:
    assert (answer.exit, answer.stream) == (0, "stdout")
    return json.loads(answer.text)


# ---- what hooks say -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("claude/session_start", HookEvent.SESSION_STARTED),
        ("claude/session_start_clear", HookEvent.SESSION_STARTED),
        ("claude/user_prompt_submit", HookEvent.PROMPT),
        ("claude/user_prompt_expansion", HookEvent.COMMAND),
        ("claude/user_prompt_expansion_plugin", HookEvent.COMMAND),
        ("claude/stop_first", HookEvent.TURN_ENDED),
        ("claude/stop_2.1.197", HookEvent.TURN_ENDED),
        ("claude/session_end_exit", HookEvent.SESSION_ENDED),
        ("claude/stop_failure", HookEvent.OTHER),
        ("claude/subagent_stop", HookEvent.OTHER),
    ],
)
def test_each_captured_event_has_its_meaning(name: str, event: HookEvent) -> None:
    heard = read(name)

    assert heard.provider == "claude"
    assert heard.event is event
    assert heard.session_id == captured(name)["session_id"]
    assert heard.folder == captured(name)["cwd"]


def test_a_stop_says_whether_a_hook_continued_the_turn_and_which_turn_it_is() -> None:
    first, active = read("claude/stop_first"), read("claude/stop_active")

    assert (first.is_continuation, active.is_continuation) == (False, True)
    assert first.turn_id == active.turn_id == captured(STOP)["prompt_id"]


def test_a_hook_says_what_its_agent_may_do_unasked() -> None:
    assert read(STOP).mode == captured(STOP)["permission_mode"] != ""
    assert read(STOP, permission_mode=None).mode == ""


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("claude/session_start", "startup"),
        ("claude/session_start_clear", "clear"),
        ("claude/session_start_fork", "fork"),
        ("claude/session_start_resume", "resume"),
        ("claude/session_end_clear", "clear"),
        ("claude/session_end_exit", "prompt_input_exit"),
    ],
)
def test_a_session_says_how_it_began_or_ended(name: str, source: str) -> None:
    assert read(name).source == source


def test_only_the_expansion_of_our_command_was_typed_by_a_person() -> None:
    typed = read(EXPANSION)
    namespaced = read("claude/user_prompt_expansion_plugin")
    submitted = read("claude/user_prompt_submit_command")
    from_a_peer = read("claude/user_prompt_submit_peer", prompt="/agentworks attach x")

    assert (typed.person_typed, typed.prompt) == (True, "/agentworks attach reviewer")
    assert namespaced.prompt == "/agentworks attach reviewer"
    assert namespaced.person_typed
    assert submitted.prompt == "/agentworks attach reviewer"
    assert not submitted.person_typed
    assert not from_a_peer.person_typed


@pytest.mark.parametrize(
    "changes",
    [
        {"command_name": "deploy", "prompt": "/deploy attach reviewer"},
        {"command_name": "other:agentworks", "prompt": "/other:agentworks attach x"},
        {"prompt": "please look at /agentworks attach reviewer"},
    ],
)
def test_another_command_or_one_inside_a_text_is_not_ours(
    changes: dict[str, object],
) -> None:
    heard = read(EXPANSION, **changes)

    assert heard.event is HookEvent.OTHER
    assert not heard.person_typed


def test_a_command_without_words_is_the_bare_command() -> None:
    assert (
        read(EXPANSION, command_args="", prompt="/agentworks").prompt == "/agentworks"
    )


@pytest.mark.parametrize("name", [STOP, EXPANSION, "claude/user_prompt_submit"])
def test_an_agent_id_makes_every_event_a_subagents(name: str) -> None:
    heard = read(name, agent_id="a000000000000001")

    assert heard.is_subagent
    assert not heard.person_typed


def test_a_subagents_stop_is_no_turns_end_even_without_its_id() -> None:
    heard = read("claude/subagent_stop", agent_id=None)

    assert heard.is_subagent
    assert heard.event is HookEvent.OTHER


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": None},
        {"session_id": ""},
        {"session_id": "../../etc"},
        {"session_id": "x" * 129},
        {"session_id": 7},
        {"stop_hook_active": None},
        {"stop_hook_active": "true"},
        {"hook_event_name": "SubagentStop"},
        {"hook_event_name": "stop"},
        {"cwd": "relative"},
        {"cwd": "/nul\0"},
        {"cwd": "/" + "x" * 4096},
        {"prompt_id": "two words"},
        {"reason": "x" * 65},
    ],
)
def test_a_stop_with_a_wrong_field_is_invalid(changes: dict[str, object]) -> None:
    with pytest.raises(Invalid) as refused:
        claude.read_hook("Stop", stdin(STOP, **changes))

    assert refused.value.code == "hook_unreadable"
    assert "/nul" not in refused.value.sentence()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"session_id":"a"}',
        b"\xff\xfe",
        b'{"session_id":"a","hook_event_name":"Stop","prompt":"\xed\xa0\x80"}',
        b"[" * 100_000,
        b'{"session_id":"a","hook_event_name":"Stop","x":' + b"[" * 100_000,
        b" " * (8 * 1024 * 1024 + 1),
    ],
)
def test_what_is_not_the_expected_object_is_invalid(content: bytes) -> None:
    with pytest.raises(Invalid):
        claude.read_hook("Stop", content)


def test_a_prompt_event_without_a_prompt_is_invalid() -> None:
    with pytest.raises(Invalid):
        read("claude/user_prompt_submit", prompt=None)


def test_a_field_of_a_newer_version_changes_nothing() -> None:
    assert read(STOP, newer={"deep": [1, 2]}) == read(STOP)


@given(st.binary(max_size=200), st.sampled_from(["Stop", "SessionStart", "x"]))
def test_any_bytes_are_read_or_invalid(content: bytes, word: str) -> None:
    try:
        heard = claude.read_hook(word, content)
    except Invalid:
        return

    assert heard.session_id


@given(st.text(max_size=300))
def test_any_prompt_arrives_as_it_was(prompt: str) -> None:
    heard = read("claude/user_prompt_submit", prompt=prompt)

    assert heard.prompt == prompt


# ---- what is printed -------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "word"),
    [
        (HookEvent.PROMPT, "UserPromptSubmit"),
        (HookEvent.TOOL_ENDED, "PostToolUse"),
        (HookEvent.TURN_ENDED, "Stop"),
    ],
)
@given(text=st.text(max_size=300))
def test_an_offer_is_the_events_context_and_nothing_else(
    event: HookEvent, word: str, text: str
) -> None:
    assert said(claude.print_offer(event, text)) == {
        "hookSpecificOutput": {"hookEventName": word, "additionalContext": text}
    }


@pytest.mark.parametrize("version", ["2.1.163", "2.1.197", "2.1.332", "3.0.0", "?"])
def test_a_version_that_shows_a_block_twice_gets_context(version: str) -> None:
    answer = claude.print_offer(HookEvent.TURN_ENDED, "x", version)

    assert b"additionalContext" in answer.text


@pytest.mark.parametrize("version", ["2.1.162", "2.0.76", "1.0.128"])
def test_a_version_whose_stop_takes_no_context_gets_a_block(version: str) -> None:
    answer = claude.print_offer(HookEvent.TURN_ENDED, "x", version)

    assert said(answer) == {"decision": "block", "reason": "x"}


@pytest.mark.parametrize(
    ("event", "word"),
    [
        (HookEvent.COMMAND, "UserPromptExpansion"),
        (HookEvent.PROMPT, "UserPromptSubmit"),
    ],
)
def test_a_typed_command_is_answered_as_a_block(event: HookEvent, word: str) -> None:
    assert said(claude.print_block(event, "attached as bob")) == {
        "decision": "block",
        "reason": "attached as bob",
        "hookSpecificOutput": {"hookEventName": word, "suppressOriginalPrompt": True},
    }


def test_nothing_is_offered_or_blocked_at_another_event() -> None:
    for event in set(HookEvent) - claude.OFFERS_AT:
        with pytest.raises(ValueError, match="no offer"):
            claude.print_offer(event, "x")
    for event in set(HookEvent) - {HookEvent.COMMAND, HookEvent.PROMPT}:
        with pytest.raises(ValueError, match="no command"):
            claude.print_block(event, "x")


def test_the_person_alone_sees_a_line_at_a_sessions_start_and_nowhere_else() -> None:
    line = claude.print_person_line(HookEvent.SESSION_STARTED, "reconnect: …")

    assert line is not None
    assert said(line) == {"systemMessage": "reconnect: …"}
    for event in set(HookEvent) - {HookEvent.SESSION_STARTED}:
        assert claude.print_person_line(event, "x") is None


@pytest.mark.parametrize(
    ("version", "event"),
    [
        ("2.1.112", HookEvent.PROMPT),
        ("2.0.1", HookEvent.PROMPT),
        ("2.1.113", HookEvent.COMMAND),
        ("2.1.332", HookEvent.COMMAND),
        ("", HookEvent.COMMAND),
        ("nightly", HookEvent.COMMAND),
    ],
)
def test_a_command_is_answered_where_only_typed_text_comes_if_the_version_has_that(
    version: str, event: HookEvent
) -> None:
    assert claude.answers_command_at(version) is event


# ---- which process it is ------------------------------------------------------------

NATIVE = "/home/user/.local/share/claude/versions/2.1.332"
NPM = "/usr/lib/node_modules/@anthropic-ai/claude-code"


@pytest.mark.parametrize(
    "facts",
    [
        process("/opt/claude-code-linux-x64/claude", "claude", "-p", "hello"),
        process("/opt/claude", "/home/user/.local/bin/claude"),
        process(f"{NPM}/bin/claude.exe", "claude"),
        process(NATIVE, "claude", name="claude"),
        process(f"{NATIVE} (deleted)", "claude", name="claude"),
        process("/usr/bin/node", "node", f"{NPM}/cli.js"),
        process("/usr/bin/node", "node", "/usr/local/bin/claude", "--resume"),
        process("/usr/bin/node", "claude", name="claude"),
        process("/usr/bin/bun", "bun", "/x/@anthropic-ai/claude-agent-sdk/cli.js"),
        process("", "claude", name="claude"),
    ],
    ids=lambda facts: " ".join((facts.program, *facts.arguments)),
)
def test_a_claude_code_process_is_recognised(facts: ProcessFacts) -> None:
    assert claude.is_program(facts)


@pytest.mark.parametrize(
    "facts",
    [
        # Its shell tool runs searches with the same file under other names.
        process("/opt/claude", "ugrep", "-r", "x", name="claude"),
        process("/opt/claude", "rg", name="claude"),
        process("/usr/bin/bash", "claude"),
        process("/usr/bin/python3", "python3", "claude"),
        process("/usr/bin/node", "node", "/srv/server.js", "claude"),
        process("/usr/bin/node", "node"),
        process("/opt/claude-helper", "claude-helper"),
        process("/opt/versions/2.1.332", "claude", name="claude"),
        process("", "python3", name="claude"),
        process("", "claude", name="python3"),
        process("/opt/codex", "codex"),
    ],
    ids=lambda facts: " ".join((facts.program, *facts.arguments)),
)
def test_another_process_is_not_taken_for_claude_code(facts: ProcessFacts) -> None:
    assert not claude.is_program(facts)


# ---- what its shells are told -------------------------------------------------------


def test_a_shell_names_its_session_and_nonsense_is_refused() -> None:
    assert claude.session_of_environment({}) is None
    assert claude.session_of_environment({"CLAUDE_CODE_SESSION_ID": "a-1"}) == "a-1"
    with pytest.raises(Refused):
        claude.session_of_environment({"CLAUDE_CODE_SESSION_ID": "two words"})


def test_a_tool_call_says_nothing_of_its_session() -> None:
    assert claude.thread_of_call({"claudecode/toolUseId": "toolu_1"}) is None
