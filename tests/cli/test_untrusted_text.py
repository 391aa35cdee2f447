"""Whatever the bridge, the server or an agent says: the terminal stays ours."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.cli import agents, attach, mail, setting_up
from bridge.cli import bridge as bridge_commands
from bridge.cli.invocation import Invocation
from bridge.cli.present import tell_bridge_error
from bridge.errors import Refused
from bridge.local.replies import AgentRow, AttachReply, SessionRow, StatusReply
from tests.core.examples import ANY_TEXT
from tests.core.test_visible import hidden_characters

NUMBERS = st.none() | st.floats(0, 1e6)
ROWS = st.builds(
    AgentRow,
    *[ANY_TEXT] * 6,
    pending=st.integers(0, 3),
    unacknowledged=st.integers(0, 3),
    oldest_unacknowledged_s=NUMBERS,
    last_contact_s=NUMBERS,
    why=ANY_TEXT,
    note=ANY_TEXT,
)
TEXTS = st.lists(ANY_TEXT, max_size=3).map(tuple)
JSON = st.recursive(
    ANY_TEXT | st.none() | st.booleans() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [
    *("message_id", "inbox_id", "sequence", "sender", "sent_at", "delivery", "message"),
    *("observed", "delivery_error", "delivery_at", "recipient", "name", "state"),
    *("since", "offline_since", "provider", "purpose", "connected", "status", "note"),
    *("submission_id", "next_cursor"),
]
FACTS = st.dictionaries(st.sampled_from(FIELDS), JSON) | st.dictionaries(
    ANY_TEXT, JSON, max_size=3
)


def said(show: Callable[[], object]) -> str:
    """All that a person sees of it, on both streams."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        show()
    return output.getvalue()


def is_tame(text: str) -> bool:
    """Nothing in it but letters and ends of lines."""
    return hidden_characters(text) == set() and "\t" not in text


# ---- what the bridge answers -------------------------------------------------------


@given(st.lists(ROWS, max_size=3).map(tuple))
def test_the_table_of_agents_has_one_tame_line_for_each(
    rows: tuple[AgentRow, ...],
) -> None:
    shown = agents.listing(rows)

    assert is_tame(shown)
    assert shown.count("\n") == len(rows)


@given(ROWS)
def test_one_agent_is_shown_on_a_line_for_each_fact(row: AgentRow) -> None:
    shown = agents.details(row)

    assert is_tame(shown)
    assert shown.count("\n") == 8 + bool(row.note) + ("://" in row.route)


@given(
    st.builds(
        StatusReply,
        ANY_TEXT,
        st.integers(1, 9),
        ANY_TEXT,
        ANY_TEXT,
        st.floats(0, 1e6),
        waiting=TEXTS,
        warnings=TEXTS,
        last_privileged=ANY_TEXT,
        told=TEXTS,
    )
)
def test_the_status_has_no_line_that_somebody_else_wrote(answer: StatusReply) -> None:
    shown = bridge_commands.overview(answer)
    without = bridge_commands.overview(StatusReply("1", 1, "running", "x", 1.0))
    sentences = (*answer.waiting, *answer.warnings, *answer.told)

    assert is_tame(shown)
    # A heading and an empty line for each kind of sentence, and the sentences.
    assert shown.count("\n") <= without.count("\n") + len(sentences) + 1 + 3 * 2


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_a_chat_or_folder_of_any_name_is_told_on_one_line(
    provider: str, folder: str, note: str
) -> None:
    wish = attach.Wish("", "", "", 0, "", Path.cwd(), True, True)
    rows = [SessionRow(provider, folder, 1, folder)]
    attached = [AttachReply(folder, note, provider, folder, note, note, (note,))]
    done = [setting_up.SetUp("claude", folder, notes=(note,))]
    for parts in ((rows, (), ()), (rows, (), attached)):
        shown = said(lambda parts=parts: attach._finish(Invocation(), wish, *parts))  # type: ignore[misc]
        assert is_tame(shown)
        assert shown.count("\n") == (2 if parts[2] else 1)
    ready = attach.Wish("", "", "", 0, "", Path.cwd(), True, False)
    shown = said(lambda: attach._finish(Invocation(), ready, (), done, ()))
    assert is_tame(shown)
    assert shown.count("\n") == 2


# ---- what the server answers -------------------------------------------------------


@given(FACTS)
def test_a_letter_is_a_head_and_lines_that_are_marked(message: dict[str, Any]) -> None:
    head, *lines = mail.letter(message).split("\n")

    assert is_tame(head)
    assert lines
    assert all(line.startswith("  | ") for line in lines)
    assert hidden_characters("\n".join(lines)) == set()


SHOWN: dict[str, Callable[[Invocation, bytes], None]] = {
    "page": mail.show_page,
    "state": mail.show_state,
    "agents": mail.show_agents,
    "facts": mail.show_facts,
}


@pytest.mark.parametrize("how", SHOWN)
@given(st.lists(FACTS, max_size=2), FACTS, st.booleans())
def test_no_answer_of_a_server_drives_the_terminal_in_text_or_json(
    how: str, rows: list[dict[str, Any]], facts: dict[str, Any], as_json: bool
) -> None:
    answer = {**facts, "messages": rows, "agents": rows, "sides": rows}
    invocation = Invocation()
    invocation.as_json = as_json
    content = json.dumps(answer).encode()
    shown = said(lambda: SHOWN[how](invocation, content))

    assert hidden_characters(shown) == set()
    if as_json:
        assert shown.isascii()
        assert json.loads(shown) == json.loads(content)


@pytest.mark.parametrize("key", ["messages", "agents", "sides"])
@pytest.mark.parametrize("how", SHOWN)
@given(JSON)
def test_an_answer_of_another_shape_is_no_traceback(
    key: str, how: str, value: object
) -> None:
    content = json.dumps({key: value}).encode()

    assert hidden_characters(said(lambda: SHOWN[how](Invocation(), content))) == set()


@given(FACTS)
def test_what_became_of_a_message_is_one_tame_line(facts: dict[str, Any]) -> None:
    shown = mail.sent(facts)

    assert is_tame(shown)
    assert "\n" not in shown


# ---- errors ------------------------------------------------------------------------


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, st.booleans())
def test_an_error_is_one_tame_line_or_one_ascii_document(
    code: str, message: str, hint: str, as_json: bool
) -> None:
    error = Refused(code, message, hint, details={"nearest": [message]})
    shown = said(lambda: tell_bridge_error(error, as_json))

    assert hidden_characters(shown) == set()
    if as_json:
        assert shown.isascii()
        assert json.loads(shown)["error"]["code"] == json.loads(json.dumps(code))
    else:
        assert shown.startswith("Error: ")
        assert shown.count("\n") == 1
