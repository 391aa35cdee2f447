"""Every fixed sentence, byte for byte, and none of them can be forged."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given

from bridge.core import standing, texts
from tests.core.examples import ANY_TEXT
from tests.core.golden_text import golden
from tests.core.test_visible import HOST_TAG, hidden_characters


def test_the_answers_to_attach() -> None:
    answers = [
        texts.attached("bob", "hook"),
        texts.attached("bob", "hook", waiting=1, is_again=True),
        texts.attached("bob", standing.HOOKS_NOT_LOADED, waiting=3),
        texts.attached("bob", "claude+session:///home/me/.claude/sessions/7.json"),
        texts.attached("bob", "hook", client="/home/me/agentworks/bin/ask"),
        texts.name_held("bob", "codex", "2026-11-29T16:05:29Z", "claude"),
        texts.name_held("bob", "script", "2026-11-29T16:05:29Z", "script"),
        texts.attach_in_progress("bob"),
        texts.attach_in_progress(None),
    ]
    text = "\n".join(answers)

    assert golden("answers_attach", text) == text


def test_what_a_native_wake_runs_under_is_said() -> None:
    notices = [
        texts.wake_notice("claude"),
        texts.wake_notice("claude", "acceptEdits"),
        texts.wake_notice("codex"),
        texts.wake_notice("agy"),
    ]
    text = "\n".join(notices)

    assert golden("notice_wake", text) == text


def test_the_answers_to_detach() -> None:
    answers = [
        texts.detached("bob"),
        texts.detached("bob", ("sub-1", "sub-2")),
        texts.not_attached("codex"),
    ]
    text = "\n".join(answers)

    assert golden("answers_detach", text) == text


def test_the_line_at_a_sessions_start() -> None:
    text = texts.session_started("bob", "claude")

    assert golden("session_started", text) == text


def test_the_lines_for_the_person() -> None:
    codes = ["held", "replaced", "revoked", "unregistered", "token_refused"]
    codes += ["journal_full", "room_again", "stream_stuck"]
    lines = [texts.told_person(code, "bob") for code in [*codes, "unheard_of"]]
    lines += [texts.plugin_needs_reload("claude"), texts.plugin_needs_reload("codex")]
    text = "\n".join(lines)

    assert golden("person_lines", text) == text


def test_the_refusals() -> None:
    refusals = [
        texts.bridge_not_running(),
        texts.bridge_not_running("/opt/agentworks/bin/agentworks"),
        texts.tool_of_unattached_chat("claude"),
        texts.tool_of_unattached_chat("codex"),
        texts.tool_of_unattached_chat("script"),
        texts.sandboxed(),
        texts.retired_message("msg-1", "agentworks", "claude"),
        texts.nobody_attached("carrol", ("carol", "carl")),
        texts.nobody_attached("carrol", ()),
    ]
    text = "\n".join(refusals)

    assert golden("refusals", text) == text


def test_what_a_sender_may_conclude() -> None:
    noon, gone = "2026-11-29T12:00:00Z", "2026-11-29T12:30:00Z"
    sentences = [
        texts.became_of("bob", "stored"),
        texts.became_of("bob", "stored", observed="offered"),
        texts.became_of("bob", "stored", observed="unsure", offline_since=gone),
        texts.became_of("bob", "typed"),
        texts.became_of("bob", "admitted", observed="unsure", at=noon),
        texts.became_of("bob", "processed", at=noon, offline_since=gone),
        texts.became_of("bob", "processed", taken_back="connection_revoked"),
        texts.became_of("bob", "stored", taken_back="connection_revoked"),
        texts.became_of("bob", "forgotten"),
        texts.RECEIPT_NOT_KNOWN,
    ]
    text = "\n".join(sentences)

    assert golden("became_of", text) == text


def any_sentence(text: str) -> list[str]:
    """Every sentence with this text in every place."""
    calls: list[Callable[[], str]] = [
        lambda: texts.attached(text, text, 2),
        lambda: texts.attached(text, text, client=text),
        lambda: texts.wake_notice(text, text),
        lambda: texts.name_held(text, text, text, text),
        lambda: texts.attach_in_progress(text),
        lambda: texts.detached(text, (text,)),
        lambda: texts.not_attached(text),
        lambda: texts.session_started(text, text),
        lambda: texts.plugin_needs_reload(text),
        lambda: texts.told_person(text, text),
        lambda: texts.tool_of_unattached_chat(text),
        lambda: texts.retired_message(text, text, text),
        lambda: texts.nobody_attached(text, (text,)),
        lambda: standing.waiting(1, text),
        lambda: standing.route_words(text),
        lambda: texts.cut_off((text, text), text),
        lambda: texts.became_of(text, "admitted", at=text, offline_since=text),
        lambda: texts.became_of(text, text, observed=text, taken_back=text),
    ]
    return [call() for call in calls]


@given(ANY_TEXT)
def test_no_sentence_can_be_broken_by_a_name(text: str) -> None:
    for sentence in any_sentence(text):
        assert "\n" not in sentence
        assert hidden_characters(sentence) == set()
        assert HOST_TAG.search(sentence) is None


def test_who_is_not_to_be_woken_reads_why() -> None:
    assert "the settings say so" in texts.not_to_be_woken(in_settings=True)
    assert "as you chose" in texts.not_to_be_woken(in_settings=False)
