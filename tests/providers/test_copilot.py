"""Copilot CLI's hooks, answers and processes, as captured and as invented."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.errors import Invalid, Refused
from bridge.providers import copilot
from tests.providers.captured import captured, process, stdin


def read(name: str, **changes: object) -> HookInput:
    """As its line names it: `agent_stop_active` is what `agentStop` said."""
    words = name.partition("/")[2]
    for more in ("_active", "_subagent", "_command"):
        words = words.removesuffix(more)
    event = re.sub("_(.)", lambda match: match[1].upper(), words)
    return copilot.read_hook(event, stdin(name, **changes))


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("copilot/session_start", HookEvent.SESSION_STARTED),
        ("copilot/user_prompt_submitted", HookEvent.PROMPT),
        ("copilot/post_tool_use", HookEvent.TOOL_ENDED),
        ("copilot/agent_stop", HookEvent.TURN_ENDED),
        ("copilot/session_end", HookEvent.SESSION_ENDED),
        ("copilot/pre_tool_use", HookEvent.OTHER),
    ],
)
def test_each_captured_event_has_its_meaning(name: str, event: HookEvent) -> None:
    heard = read(name)

    assert (heard.provider, heard.event) == ("copilot", event)
    assert heard.session_id == captured(name)["sessionId"]
    assert heard.folder == "/home/user/project"
    assert not heard.is_subagent


def test_a_stop_says_whether_a_hook_continued_the_turn() -> None:
    assert not read("copilot/agent_stop").is_continuation
    assert read("copilot/agent_stop_active").is_continuation


@pytest.mark.parametrize(
    "name",
    ["user_prompt_submitted", "post_tool_use", "agent_stop"],
)
def test_a_subagents_events_are_marked(name: str) -> None:
    assert read(f"copilot/{name}_subagent").is_subagent


def test_the_end_of_a_subagent_is_no_turns_end() -> None:
    heard = copilot.read_hook("subagentStop", stdin("copilot/subagent_stop"))

    assert (heard.event, heard.is_subagent) == (HookEvent.OTHER, True)


# ---- the typed command --------------------------------------------------------------

MADE = "copilot/user_prompt_submitted_command"


def test_a_typed_command_is_found_in_what_the_host_makes_of_it() -> None:
    without = str(captured(MADE)["prompt"]).replace("\nARGUMENTS: attach bob", "")

    assert read(MADE).prompt == "/agentworks attach bob"
    assert read(MADE, prompt=without).prompt == "/agentworks"


@pytest.mark.parametrize(
    "change",
    [
        lambda made: "Look: " + made,
        lambda made: made + "\nand more",
        lambda made: made.replace("/agentworks", "/other"),
        lambda made: made.replace('name="agentworks"', 'name="other"'),
        lambda made: made.replace("attach bob", "attach bob\nand more"),
    ],
)
def test_anything_around_or_beside_it_is_no_command(change: object) -> None:
    assert callable(change)
    prompt = change(captured(MADE)["prompt"])

    heard = read(MADE, prompt=prompt)

    assert not heard.prompt.startswith("/agentworks attach bob")


def test_a_long_prompt_of_that_kind_is_read_at_once() -> None:
    made = str(captured(MADE)["prompt"])
    prompt = made.replace("\n</skill-context>", "\nARGUMENTS: a" * 200_000)

    assert read(MADE, prompt=prompt).prompt == prompt


@pytest.mark.parametrize(
    "changes",
    [
        {"sessionId": None},
        {"sessionId": "a b"},
        {"stop_hook_active": None},
        {"cwd": "project"},
        {"reason": "x" * 65},
        {"agentId": 7},
    ],
)
def test_a_hook_that_says_something_else_is_not_read(
    changes: dict[str, object],
) -> None:
    with pytest.raises(Invalid):
        read("copilot/agent_stop", **changes)


@given(st.sampled_from(["userPromptSubmitted", "agentStop"]), st.binary(max_size=300))
def test_whatever_bytes_come_are_heard_or_refused(word: str, said: bytes) -> None:
    try:
        copilot.read_hook(word, said)
    except Invalid as error:
        assert error.code == "hook_unreadable"  # noqa: PT017 - either way is right


@given(st.text(max_size=400))
def test_every_prompt_has_an_end(prompt: str) -> None:
    made = str(captured(MADE)["prompt"]).replace("attach bob", prompt)

    heard = read(MADE, prompt=made)

    assert heard.prompt in (made, f"/agentworks {prompt}".strip())


@given(st.text(max_size=300))
def test_an_offer_is_the_next_prompt_or_context(text: str) -> None:
    ended = copilot.print_offer(HookEvent.TURN_ENDED, text).text

    assert json.loads(ended) == {"decision": "block", "reason": text}
    for event in (HookEvent.PROMPT, HookEvent.TOOL_ENDED):
        context = copilot.print_offer(event, text).text
        assert json.loads(context) == {"additionalContext": text}


def test_nothing_is_printed_at_any_other_event() -> None:
    for event in set(HookEvent) - copilot.OFFERS_AT:
        with pytest.raises(ValueError, match="no offer"):
            copilot.print_offer(event, "x")
    for event in set(HookEvent) - {HookEvent.PROMPT}:
        with pytest.raises(ValueError, match="no command"):
            copilot.print_block(event, "x")
    for event in HookEvent:
        assert copilot.print_person_line(event, "x") is None


NATIVE = "/usr/lib/node_modules/@github/copilot-linux-x64/copilot"


@pytest.mark.parametrize(
    "facts",
    [
        process(NATIVE, NATIVE, "-p", "hello"),
        process(NATIVE, "copilot"),
        process("", "copilot"),
        process("/opt/copilot-darwin-arm64", "copilot-darwin-arm64"),
    ],
)
def test_copilots_processes_are_known(facts: ProcessFacts) -> None:
    assert copilot.is_program(facts)


@pytest.mark.parametrize(
    "facts",
    [
        process("/usr/bin/node", "node", "/opt/@github/copilot/npm-loader.js"),
        process("/bin/bash", "copilot"),
        process(NATIVE, "helper"),
        process("", "vi", "copilot"),
    ],
)
def test_other_processes_are_not_copilot(facts: ProcessFacts) -> None:
    assert not copilot.is_program(facts)


def test_the_environment_of_a_command_or_child_names_its_chat() -> None:
    variable = "COPILOT_AGENT_SESSION_ID"

    assert copilot.session_of_environment({"COPILOT_CLI": "1"}) is None
    assert copilot.session_of_environment({variable: "abc-1"}) == "abc-1"
    assert copilot.thread_of_call({"progressToken": 1}) is None
    with pytest.raises(Refused):
        copilot.session_of_environment({variable: "a b"})
