"""Showing who is attached, and ending that."""

from __future__ import annotations

import pytest

from tests.cli.conftest import FakeDaemon, Run, typed

BOB = {
    "name": "bob",
    "provider": "claude",
    "session": "0b3c1d2e",
    "state": "attached",
    "route": "hook",
    "purpose": "Review \x1b[31mincoming",
    "pending": 3,
    "unacknowledged": 2,
    "oldest_unacknowledged_s": 90.5,
    "last_contact_s": 5.2,
    "why": "server silent for 40 s",
}
EVE = {"name": "eve", "provider": "codex", "session": "9f", "state": "offline"} | {
    "route": "-"
}


def test_the_table_shows_waiting_mail_and_why(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["agents"] = {"agents": [BOB, EVE]}

    lines = run("agents").out.splitlines()

    assert lines[0].split()[:4] == ["NAME", "PROVIDER", "SESSION", "STATE"]
    assert "3 waiting, server silent for 40 s" in lines[1]
    assert "\\u{1b}[31m" in lines[1]
    assert lines[2].startswith("eve")


def test_a_chat_that_is_not_live_says_why_and_a_way_has_plain_words(
    run: Run, daemon: FakeDaemon
) -> None:
    way = "claude+session:///home/ada/.claude/sessions/7.json"
    gone = EVE | {"not_live": "stopped, offline for 5 min"}
    daemon.replies["agents"] = {"agents": [BOB | {"route": way}, gone]}

    out, details = run("agents").out, run("agents", "bob").out

    assert "at once, by the chat's own inbox" in out
    assert "stopped, offline for 5 min" in out
    assert way not in out
    assert way in details


def test_nobody_attached_says_how(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["agents"] = {"agents": []}

    out = run("agents").out

    assert "No chat of this computer is attached." in out
    assert "/agentworks attach" in out


def test_one_name_is_shown_with_all_that_is_known(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["agents"] = {"agents": [BOB]}

    out = run("agents", "bob").out

    assert daemon.asked == [{"verb": "agents", "name": "bob"}]
    assert "2, the oldest for 1 min" in out
    assert "3 waiting, server silent for 40 s" in out
    assert "5 s" in out


def test_an_unknown_name_fails_with_the_nearest_ones(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["agents"] = {"agents": []}
    nobody = run("agents", "zoe")
    daemon.unnamed["agents"] = {"agents": [BOB, EVE]}
    near, in_json = run("agents", "bop"), run("agents", "bop", "--json")

    assert nobody.exit_code == near.exit_code == in_json.exit_code == 1
    assert "attached as zoe" in nobody.err
    assert "Did you mean bob?" in near.err
    assert "not_attached" in in_json.err
    assert nobody.out == near.out == in_json.out == ""


def test_what_was_not_acknowledged_is_in_the_table_and_in_json(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["agents"] = {"agents": [BOB, EVE]}

    (_, bob, eve), document = (
        run("agents").out.splitlines(),
        run("agents", "--json").document(),
    )

    assert "40 s; 2 unacknowledged for 1 min" in bob
    assert "unacknowledged" not in eve
    assert document["agents"][0]["oldest_unacknowledged_s"] == 90.5


def test_what_the_person_is_to_know_of_a_state_is_said(
    run: Run, daemon: FakeDaemon
) -> None:
    replaced = EVE | {"state": "replaced", "note": "The name eve moved."}
    daemon.replies["agents"] = {"agents": [replaced]}

    assert "The name eve moved." in run("agents", "eve").out


def test_json_is_ascii_and_whole(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["agents"] = {"agents": [BOB | {"purpose": "\x9b\u202e\x7f"}]}

    ran = run("agents", "--json")

    assert ran.out.isascii()
    assert ran.out.replace("\n", "").isprintable()
    assert ran.document()["agents"][0]["purpose"] == "\x9b\u202e\x7f"


def test_a_name_is_detached(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["detach"] = {"name": "bob", "queued": ["sub-1"]}

    ran = run("detach", "bob")

    assert daemon.asked == [{"verb": "detach", "name": "bob"}]
    assert "Detached bob" in ran.out
    assert "sub-1" in ran.out
    assert run("detach", "bob", "--json").document()["queued"] == ["sub-1"]


def test_a_chat_detaches_its_own_attachment(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["prepare"] = {"caller": "own"}
    daemon.replies["detach"] = {"name": "bob"}

    assert run("detach").exit_code == 0
    assert daemon.asked[-1] == {"verb": "detach"}


def test_a_person_at_a_terminal_chooses_whom_to_detach(
    run: Run, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.replies["prepare"] = {"caller": "person"}
    daemon.replies["agents"] = {"agents": [BOB, EVE]}
    daemon.replies["detach"] = {"name": "eve"}

    with typed(monkeypatch, "7\n2\n"):
        ran = run("detach")

    assert daemon.asked[-1] == {"verb": "detach", "name": "eve"}
    assert "That is none of them." in ran.err
    assert ran.out == (
        "Detached eve: other agents reach this chat no more, and its connection was "
        "revoked. The name stays registered.\n"
    )


def test_without_a_terminal_the_daemon_says_that_a_name_is_needed(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["prepare"] = {"caller": "person"}
    daemon.replies["agents"] = {"agents": [BOB, EVE]}
    daemon.refuse("detach", "name_needed", 1)

    assert run("detach").exit_code == 1
    assert daemon.asked[-1] == {"verb": "detach"}
