"""The table of attachments: in a person's words, and each row one safe line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from bridge.core import standing
from tests.core.examples import ANY_TEXT
from tests.core.golden_text import golden
from tests.core.test_visible import hidden_characters


class Row(Struct, frozen=True):
    """A row as the bridge answers it to a local command."""

    name: str
    provider: str = "claude"
    session: str = "d2bc7444"
    state: str = "attached"
    route: str = "hook"
    purpose: str = ""
    pending: int = 0
    why: str = ""
    unacknowledged: int = 0
    oldest_unacknowledged_s: float | None = None
    not_live: str = ""
    last_contact_s: float | None = None


ROWS = (
    Row("bob", purpose="Reviews changes", last_contact_s=5.2),
    Row("alice", "codex", "e1170043", pending=3, why="server silent for 40 s"),
    Row("carol", route=standing.HOOKS_NOT_LOADED, pending=1),
    Row("frank", state="offline", route="-", not_live="stopped, offline for 5 min"),
    Row("grace", "codex", route="-", not_live=standing.NOT_TRUSTED),
    Row("heidi", route="claude+session:///home/me/.claude/sessions/7.json"),
    Row("dave", unacknowledged=2, oldest_unacknowledged_s=301.9),
    Row("erin", pending=1, why="no turn has ended", unacknowledged=1),
)


def test_the_agents_table() -> None:
    text = standing.agents_table(ROWS)

    assert golden("answer_agents", text) == text
    assert standing.agents_table(()) == "No chat of this computer is attached."


def test_the_table_in_a_chat_has_at_most_20_rows() -> None:
    lines = standing.agents_table([Row(f"agent-{n}") for n in range(25)]).splitlines()

    assert len(lines) == 22
    assert lines[-1] == "and 5 more: agentworks agents"


@pytest.mark.parametrize(
    ("count", "why", "shown"),
    [(0, "x", ""), (3, "no turn has ended", "3 waiting, no turn has ended")],
)
def test_waiting_mail_says_why(count: int, why: str, shown: str) -> None:
    assert standing.waiting(count, why) == shown


@pytest.mark.parametrize(
    ("count", "oldest_s", "shown"),
    [
        (0, None, ""),
        (1, None, "1 unacknowledged"),
        (2, 59.9, "2 unacknowledged for 59 s"),
        (2, 60.0, "2 unacknowledged for 1 min"),
        (2, 7_199.0, "2 unacknowledged for 1 h"),
        (2, 172_800.0, "2 unacknowledged for 2 d"),
    ],
)
def test_what_was_not_acknowledged_has_a_count_and_an_age(
    count: int, oldest_s: float | None, shown: str
) -> None:
    assert standing.unacknowledged(count, oldest_s) == shown


@given(st.lists(st.builds(Row, ANY_TEXT, ANY_TEXT, purpose=ANY_TEXT), max_size=25))
def test_a_row_is_one_line_whatever_it_says(rows: list[Row]) -> None:
    text = standing.agents_table(rows)

    heading, more = bool(rows), len(rows) > 20
    assert len(text.split("\n")) == max(1, min(len(rows), 20) + heading + more)
    assert hidden_characters(text) == set()


@pytest.mark.parametrize(
    ("route", "words"),
    [
        ("hook", "when a turn ends"),
        ("claude+session:///x/7.json", "at once, by the chat's own inbox"),
        ("unix:///run/codex.sock", "at once, by Codex's app server"),
        ("later+kind:///x", "at once, by later+kind"),
        ("-", "-"),
        (standing.HOOKS_NOT_LOADED, standing.HOOKS_NOT_LOADED),
    ],
)
def test_each_way_has_plain_words(route: str, words: str) -> None:
    assert standing.route_words(route) == words


def test_why_an_offline_chat_is_not_live() -> None:
    assert standing.stopped(301.0, is_gone=True) == "stopped, offline for 5 min"
    assert standing.stopped(61.0, is_gone=False) == "chat left, offline for 1 min"
    assert standing.stopped(None, is_gone=True) == "stopped"
