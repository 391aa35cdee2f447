"""Cursor's hooks, answers and processes, as its own package makes them."""

from __future__ import annotations

import codecs
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.errors import Invalid, Refused
from bridge.providers import claude, cursor
from tests.providers.captured import captured, event_word, process, stdin


def read(name: str, **changes: object) -> HookInput:
    return cursor.read_hook(event_word(name), stdin(name, **changes))


# ---- what hooks say -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("cursor/session_start", HookEvent.SESSION_STARTED),
        ("cursor/before_submit_prompt", HookEvent.PROMPT),
        ("cursor/post_tool_use", HookEvent.TOOL_ENDED),
        ("cursor/stop", HookEvent.TURN_ENDED),
        ("cursor/session_end", HookEvent.SESSION_ENDED),
        ("cursor/subagent_stop", HookEvent.OTHER),
        ("cursor/before_shell_execution", HookEvent.OTHER),
    ],
)
def test_each_event_has_its_meaning(name: str, event: HookEvent) -> None:
    heard = read(name)

    assert (heard.provider, heard.event) == ("cursor", event)
    assert heard.session_id == captured(name)["conversation_id"]
    assert heard.folder == "/home/user/project"
    assert not heard.person_typed


def test_a_stop_says_how_often_a_hook_continued_the_turn() -> None:
    first, second = read("cursor/stop"), read("cursor/stop_loop1")

    assert (first.continuations, first.is_continuation) == (0, False)
    assert (second.continuations, second.is_continuation) == (1, True)


@pytest.mark.parametrize("status", ["aborted", "error", "", "finished"])
def test_only_a_completed_turn_may_drain(status: str) -> None:
    assert read("cursor/stop").may_drain
    assert not read("cursor/stop", status=status).may_drain
    assert not read("cursor/stop_aborted").may_drain


def test_a_typed_command_comes_as_a_prompt() -> None:
    assert read("cursor/before_submit_prompt").prompt == "/agentworks attach reviewer"


def test_a_subagents_stop_is_marked() -> None:
    assert read("cursor/subagent_stop").is_subagent
    assert not read("cursor/stop").is_subagent


def test_a_byte_order_mark_is_read_over() -> None:
    content = codecs.BOM_UTF8 + stdin("cursor/stop")

    assert cursor.read_hook("stop", content) == read("cursor/stop")


def test_a_window_without_a_folder_has_none() -> None:
    assert read("cursor/stop", workspace_roots=[]).folder == ""
    assert read("cursor/stop", workspace_roots=None).folder == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"conversation_id": None},
        {"conversation_id": "a b"},
        {"session_id": "another"},
        {"cursor_version": None},
        {"loop_count": None},
        {"loop_count": -1},
        {"loop_count": "1"},
        {"hook_event_name": "beforeSubmitPrompt"},
        {"workspace_roots": ["relative"]},
        {"workspace_roots": "/one"},
        {"reason": "x" * 65},
    ],
)
def test_a_stop_with_a_wrong_field_is_invalid(changes: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        cursor.read_hook("stop", stdin("cursor/stop", **changes))


def test_a_prompt_event_without_a_prompt_is_invalid() -> None:
    with pytest.raises(Invalid):
        read("cursor/before_submit_prompt", prompt=None)


@given(st.binary(max_size=200), st.sampled_from(["stop", "beforeSubmitPrompt", "x"]))
def test_any_bytes_are_read_or_invalid(content: bytes, word: str) -> None:
    try:
        heard = cursor.read_hook(word, content)
    except Invalid:
        return

    assert heard.session_id


@given(
    st.dictionaries(
        st.sampled_from(["status", "loop_count", "session_id", "prompt", "more"]),
        st.none() | st.integers() | st.text(max_size=5) | st.lists(st.text()),
    )
)
def test_a_stop_with_any_fields_drains_only_when_it_is_said_to_be_completed(
    changes: dict[str, object],
) -> None:
    try:
        heard = read("cursor/stop", **changes)
    except Invalid:
        return

    assert heard.may_drain == (changes.get("status", "completed") == "completed")


# ---- Claude Code's hooks, which Cursor runs too --------------------------------------


@pytest.mark.parametrize(
    "name",
    ["stop_first", "user_prompt_submit", "user_prompt_expansion", "session_start"],
)
@pytest.mark.parametrize("version", ["2026.09.18-9a7762b", "", 3, None])
def test_a_claude_hook_that_cursor_runs_leaves(name: str, version: object) -> None:
    """The fallback of the typed command is for silence, and here is an answer."""
    said = captured(f"claude/{name}") | {"cursor_version": version}

    with pytest.raises(Invalid):
        claude.read_hook(said["hook_event_name"], json.dumps(said).encode())


def test_cursors_own_input_is_no_event_of_claude() -> None:
    for word in ("Stop", "stop"):
        with pytest.raises(Invalid):
            claude.read_hook(word, stdin("cursor/stop"))


# ---- what is printed ----------------------------------------------------------------


@given(st.text(max_size=300))
def test_an_answer_is_one_field_for_its_event(text: str) -> None:
    def printed(event: HookEvent) -> object:
        answer = cursor.print_offer(event, text)
        assert (answer.exit, answer.stream) == (0, "stdout")
        return json.loads(answer.text)

    assert printed(HookEvent.TURN_ENDED) == {"followup_message": text}
    assert printed(HookEvent.PROMPT) == {"additional_context": text}
    assert printed(HookEvent.TOOL_ENDED) == {"additional_context": text}
    assert json.loads(cursor.print_block(HookEvent.PROMPT, text).text) == {
        "continue": False,
        "user_message": text,
    }


def test_nothing_is_printed_at_any_other_event() -> None:
    for event in set(HookEvent) - cursor.OFFERS_AT:
        with pytest.raises(ValueError, match="no offer"):
            cursor.print_offer(event, "x")
    for event in set(HookEvent) - {HookEvent.PROMPT}:
        with pytest.raises(ValueError, match="no command"):
            cursor.print_block(event, "x")
    for event in HookEvent:
        assert cursor.print_person_line(event, "x") is None


# ---- which process, which conversation ----------------------------------------------

CLI = "/home/user/.local/share/cursor-agent/versions/2026.09.18-9a7762b"
MAC = "/Applications/Cursor.app/Contents"
HELPER = f"{MAC}/Frameworks/Cursor Helper (Plugin).app/Contents/MacOS"


@pytest.mark.parametrize(
    "facts",
    [
        process(f"{CLI}/node", "agent", "--use-system-ca", f"{CLI}/index.js"),
        process(f"{CLI}/node (deleted)", "cursor-agent", f"{CLI}/index.js", "-p"),
        process(f"{CLI}/cursor-agent", "cursor-agent"),
    ],
    ids=lambda facts: " ".join((facts.program, *facts.arguments)),
)
def test_a_process_of_the_cli_is_recognised(facts: ProcessFacts) -> None:
    assert cursor.is_cli(facts)
    assert cursor.is_program(facts)
    assert not cursor.is_app(facts)


@pytest.mark.parametrize(
    "facts",
    [
        process("/opt/Cursor/cursor", "/opt/Cursor/cursor", "--type=utility"),
        process("/usr/share/cursor/cursor"),
        process("/tmp/.mount_Cursor7a/usr/share/cursor/cursor", "/proc/self/exe"),
        process(f"{MAC}/MacOS/Cursor"),
        process(f"{HELPER}/Cursor Helper (Plugin)"),
        process("/home/user/.cursor-server/bin/96752/node", "node", "--dns=x"),
    ],
    ids=lambda facts: facts.program,
)
def test_a_process_of_the_app_is_recognised(facts: ProcessFacts) -> None:
    assert cursor.is_app(facts)
    assert cursor.is_program(facts)
    assert not cursor.is_cli(facts)


@pytest.mark.parametrize(
    "facts",
    [
        process(f"{CLI}/node", "node", f"{CLI}/worker.js"),
        process(f"{CLI}/rg", "rg", "x"),
        process("/usr/bin/node", "agent", f"{CLI}/index.js"),
        process("/usr/bin/cursor", "cursor"),
        process("/opt/Cursor/resources/rg", "rg"),
        process("", "cursor", name="cursor"),
    ],
    ids=lambda facts: " ".join((facts.program, *facts.arguments)),
)
def test_another_process_is_not_taken_for_cursor(facts: ProcessFacts) -> None:
    assert not cursor.is_program(facts)


def test_a_shell_names_its_conversation() -> None:
    variables = {"CURSOR_AGENT": "1", "CURSOR_CONVERSATION_ID": "668320d2"}

    assert cursor.session_of_environment(variables) == "668320d2"
    assert cursor.session_of_environment({}) is None
    assert cursor.thread_of_call({"conversation_id": "668320d2"}) is None
    with pytest.raises(Refused):
        cursor.session_of_environment({"CURSOR_CONVERSATION_ID": "a b"})
