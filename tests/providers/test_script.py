"""Scripts: known by their process alone, told bare text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent
from bridge.core.records import ProcessKey, process_key
from bridge.errors import Invalid
from bridge.providers import script
from tests.providers.captured import process


@given(st.binary(max_size=50))
def test_a_stop_is_a_turns_end_whatever_is_on_stdin(content: bytes) -> None:
    heard = script.read_hook("stop", content)

    assert heard.event is HookEvent.TURN_ENDED
    assert (heard.session_id, heard.prompt) == ("", "")
    assert not heard.is_continuation


@pytest.mark.parametrize("word", ["", "Stop", "start", "prompt"])
def test_another_word_is_invalid(word: str) -> None:
    with pytest.raises(Invalid):
        script.read_hook(word, b"")


def test_the_session_is_the_process() -> None:
    key = ProcessKey("boot", 12, 345)

    assert process_key(script.session_id(key)) == key


def test_an_offer_is_the_bare_text_with_an_end_of_line() -> None:
    answer = script.print_offer(HookEvent.TURN_ENDED, "grüße")

    assert (answer.exit, answer.stream) == (0, "stdout")
    assert answer.text == "grüße\n".encode()


def test_nothing_is_printed_at_any_other_event() -> None:
    for event in set(HookEvent) - {HookEvent.TURN_ENDED}:
        with pytest.raises(ValueError, match="no offer"):
            script.print_offer(event, "x")
    for event in HookEvent:
        assert script.print_person_line(event, "x") is None
        with pytest.raises(ValueError, match="no command"):
            script.print_block(event, "x")


def test_no_process_is_a_script_by_its_name() -> None:
    assert not script.is_program(process("/usr/bin/script"))
    assert not script.is_program(process("", "script", name="script"))


def test_nothing_but_the_process_names_its_session() -> None:
    assert script.thread_of_call({"threadId": "x"}) is None
    assert script.session_of_environment({"CODEX_THREAD_ID": "x"}) is None
