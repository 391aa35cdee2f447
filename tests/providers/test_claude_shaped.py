"""Muse, Kimi Code and Droid: hooks like Claude Code's, each with its own answers."""

from __future__ import annotations

import json
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent, HookInput
from bridge.errors import Invalid, Refused
from bridge.providers import droid, kimi, muse
from tests.providers.captured import captured, event_word, process, stdin

PROVIDERS = [muse, kimi, droid]
every = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: each.NAME)


def read(provider: ModuleType, name: str, **changes: object) -> HookInput:
    heard: HookInput = provider.read_hook(event_word(name), stdin(name, **changes))
    return heard


# ---- what hooks say -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "name", "event"),
    [
        (muse, "muse/session_start", HookEvent.SESSION_STARTED),
        (muse, "muse/user_prompt_submit", HookEvent.PROMPT),
        (muse, "muse/stop", HookEvent.TURN_ENDED),
        (muse, "muse/pre_tool_use", HookEvent.OTHER),
        (kimi, "kimi/session_start", HookEvent.SESSION_STARTED),
        (kimi, "kimi/user_prompt_submit", HookEvent.PROMPT),
        (kimi, "kimi/stop", HookEvent.TURN_ENDED),
        (droid, "droid/stop", HookEvent.TURN_ENDED),
    ],
)
def test_each_event_has_its_meaning(
    provider: ModuleType, name: str, event: HookEvent
) -> None:
    heard = read(provider, name)

    assert (heard.provider, heard.event) == (provider.NAME, event)
    assert heard.session_id == captured(name)["session_id"]
    assert heard.folder == "/home/user/project"
    assert heard.may_drain
    assert not heard.person_typed


@every
def test_a_prompt_and_a_sessions_end_are_heard(provider: ModuleType) -> None:
    def heard(word: str, **fields: object) -> HookInput:
        said = {"session_id": "s", "hook_event_name": word, "cwd": "/p", **fields}
        answer: HookInput = provider.read_hook(word, json.dumps(said).encode())
        return answer

    assert heard("UserPromptSubmit", prompt="hello").prompt == "hello"
    assert heard("SessionEnd", reason="exit").event is HookEvent.SESSION_ENDED
    assert heard("SubagentStop").is_subagent
    assert heard("Stop", stop_hook_active=True, agent_id="a").is_subagent


def test_muse_says_whether_a_hook_continued_the_turn() -> None:
    first, second = read(muse, "muse/stop"), read(muse, "muse/stop_active")

    assert (first.is_continuation, second.is_continuation) == (False, True)
    assert first.turn_id == second.turn_id == "t1"


@every
@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": None},
        {"session_id": "a b"},
        {"stop_hook_active": None},
        {"stop_hook_active": "no"},
        {"hook_event_name": "SessionEnd"},
        {"cwd": "relative"},
    ],
)
def test_a_stop_with_a_wrong_field_is_invalid(
    provider: ModuleType, changes: dict[str, object]
) -> None:
    with pytest.raises(Invalid):
        provider.read_hook("Stop", stdin(f"{provider.NAME}/stop", **changes))


@every
@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_invalid(provider: ModuleType, content: bytes) -> None:
    try:
        heard = provider.read_hook("Stop", content)
    except Invalid:
        return

    assert heard.session_id


# ---- what is printed ----------------------------------------------------------------


@pytest.mark.parametrize("provider", [muse, droid])
@given(text=st.text(max_size=300))
def test_muse_and_droid_are_told_to_go_on_with_the_text(
    provider: ModuleType, text: str
) -> None:
    expected = {"decision": "block", "reason": text}

    said = provider.print_offer(HookEvent.TURN_ENDED, text)
    assert (said.exit, json.loads(said.text)) == (0, expected)
    assert json.loads(provider.print_block(HookEvent.PROMPT, text).text) == expected


@given(st.text(max_size=300))
def test_kimi_is_told_by_its_exit_code_and_stderr(text: str) -> None:
    for said in (
        kimi.print_offer(HookEvent.TURN_ENDED, text),
        kimi.print_block(HookEvent.PROMPT, text),
    ):
        assert (said.exit, said.stream) == (2, "stderr")
        assert said.text.decode() == text


def test_muse_takes_context_beside_a_prompt() -> None:
    assert json.loads(muse.print_offer(HookEvent.PROMPT, "x").text) == {
        "hookSpecificOutput": {
            "hookEventName": "UserPromptSubmit",
            "additionalContext": "x",
        }
    }


@every
def test_nothing_is_printed_at_any_other_event(provider: ModuleType) -> None:
    for event in set(HookEvent) - provider.OFFERS_AT:
        with pytest.raises(ValueError, match="no offer"):
            provider.print_offer(event, "x")
    for event in set(HookEvent) - {HookEvent.PROMPT}:
        with pytest.raises(ValueError, match="no command"):
            provider.print_block(event, "x")
    for event in HookEvent:
        assert provider.print_person_line(event, "x") is None


# ---- which process, which session ---------------------------------------------------


@every
def test_a_program_is_known_by_name_and_command(provider: ModuleType) -> None:
    name = provider.NAME
    assert provider.is_program(process(f"/opt/bin/{name}", name, "--resume"))
    assert provider.is_program(process("", name, name=name))
    assert not provider.is_program(process(f"/opt/bin/{name}-helper", name))
    assert not provider.is_program(process("/usr/bin/bash", name))
    assert not provider.is_program(process("", "bash", name=name))


def test_kimi_is_a_script_that_node_runs() -> None:
    script = "/usr/lib/node_modules/@moonshot-ai/kimi-code/dist/main.mjs"

    assert kimi.is_program(process("/usr/bin/node", "node", script))
    assert kimi.is_program(process("/usr/bin/node", "node", "/usr/bin/kimi"))
    assert not kimi.is_program(process("/usr/bin/node", "node", "/srv/main.mjs"))
    assert not kimi.is_program(process("/usr/bin/node", "node"))


def test_a_shell_of_muse_names_its_session() -> None:
    assert muse.session_of_environment({"MUSE_SESSION_ID": "01a05d64"}) == "01a05d64"
    assert muse.session_of_environment({}) is None
    with pytest.raises(Refused):
        muse.session_of_environment({"MUSE_SESSION_ID": "a b"})


@every
def test_a_call_names_no_session(provider: ModuleType) -> None:
    assert provider.thread_of_call({"threadId": "x"}) is None
    if provider is not muse:
        assert provider.session_of_environment({"MUSE_SESSION_ID": "x"}) is None
