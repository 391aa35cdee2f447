"""What our extensions say from inside of Pi and opencode, and what they are told."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import assets
from bridge.core.caller import HookEvent, HookInput
from bridge.core.command import typed_command
from bridge.errors import Invalid
from bridge.providers import opencode, pi
from bridge.providers.known import Provider

BOTH = pytest.mark.parametrize("provider", [pi, opencode])
SESSION = "ses_dd82ca59effeo0Qy2PLCRxOfUK"


def said(event: str, **more: object) -> bytes:
    whole = {"session_id": SESSION, "cwd": "/home/user/project", "turn_id": "1"}
    return json.dumps({**whole, "hook_event_name": event, **more}).encode()


@BOTH
@pytest.mark.parametrize(
    ("word", "event", "more"),
    [
        ("session_start", HookEvent.SESSION_STARTED, {"source": "new"}),
        ("prompt", HookEvent.PROMPT, {"prompt": "hello"}),
        ("command", HookEvent.COMMAND, {"command_args": "attach bob"}),
        ("turn_end", HookEvent.TURN_ENDED, {"stop_hook_active": False}),
        ("session_end", HookEvent.SESSION_ENDED, {"reason": "quit"}),
        ("tomorrows_event", HookEvent.OTHER, {}),
    ],
)
def test_each_event_is_what_its_word_says(
    provider: Provider, word: str, event: HookEvent, more: dict[str, object]
) -> None:
    heard = provider.read_hook(word, said(word, **more))
    assert heard.event is event
    assert (heard.provider, heard.session_id) == (provider.NAME, SESSION)
    assert heard.folder == "/home/user/project"


@BOTH
def test_a_typed_command_counts_as_typed_and_a_prompt_does_not(
    provider: Provider,
) -> None:
    typed = provider.read_hook("command", said("command", command_args=" attach bob "))
    written = provider.read_hook("prompt", said("prompt", prompt=typed.prompt))

    def command(heard: HookInput) -> object:
        return typed_command(heard, host_marks_typed=True, is_nested=False)

    assert typed.prompt == "/agentworks attach bob"
    assert command(typed) is not None
    assert command(written) is None


@BOTH
def test_a_bare_command_is_the_command(provider: Provider) -> None:
    assert provider.read_hook("command", said("command")).prompt == "/agentworks"


@BOTH
@pytest.mark.parametrize(
    ("reason", "may_drain"), [("completed", True), ("aborted", False), ("", False)]
)
def test_only_a_completed_turn_may_drain(
    provider: Provider, reason: str, may_drain: bool
) -> None:
    ended = said("turn_end", stop_hook_active=False, reason=reason)
    assert provider.read_hook("turn_end", ended).may_drain is may_drain


@BOTH
@pytest.mark.parametrize(
    "stdin",
    [
        b"",
        b"[]",
        said("prompt"),
        said("turn_end"),
        said("session_start", session_id="../x"),
        said("session_start", session_id=1),
        said("session_start", cwd="not absolute"),
        said("another_event"),
    ],
)
def test_what_is_not_in_shape_is_invalid(provider: Provider, stdin: bytes) -> None:
    word = re.search(rb'_name": "(\w+)"', stdin)
    name = word.group(1).decode() if word else "session_start"
    with pytest.raises(Invalid):
        provider.read_hook("turn_end" if name == "another_event" else name, stdin)


@BOTH
@given(st.binary(max_size=300))
def test_any_bytes_are_an_event_or_invalid(provider: Provider, stdin: bytes) -> None:
    with pytest.raises(Invalid):
        provider.read_hook("prompt", stdin)


@BOTH
@pytest.mark.parametrize("event", list(HookEvent))
def test_texts_are_handed_over_plain_and_only_where_they_are_used(
    provider: Provider, event: HookEvent
) -> None:
    text = "one line\nand “another”"
    for print_, used_at in (
        (provider.print_offer, HookEvent.TURN_ENDED),
        (provider.print_block, HookEvent.COMMAND),
    ):
        if event is used_at:
            assert print_(event, text).text.decode() == text
        else:
            with pytest.raises(ValueError, match=event.value):
                print_(event, text)
    line = provider.print_person_line(event, text)
    assert (line is not None) == (event is HookEvent.SESSION_STARTED)


@BOTH
def test_a_tool_call_names_no_chat(provider: Provider) -> None:
    assert provider.thread_of_call({"threadId": SESSION}) is None


@BOTH
def test_the_extension_says_only_events_that_are_heard(provider: Provider) -> None:
    script = assets.folder("hooks") / provider.NAME / "agentworks.mjs"
    text = script.read_text() + (assets.folder("hooks") / "adapter.mjs").read_text()
    words = set(re.findall(r'\.ask\(\s*"(\w+)"', text))

    assert words == {"session_start", "prompt", "command", "turn_end", "session_end"}
    assert set(re.findall(r'from "([^"]+)"', text)) <= {
        "../adapter.mjs",
        "node:fs",
        "node:net",
        "node:path",
        "node:url",
    }
