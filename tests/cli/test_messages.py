"""`messages` and `bridge message`: every flag reaches the daemon as it should."""

from __future__ import annotations

import shlex
import socket
from typing import Any

import pytest

from bridge.paths import Paths
from tests.cli.conftest import FakeDaemon, Run
from tests.fakes.answering import answering, read_call

ACCEPTED = {
    "status": "accepted",
    "message_id": "msg-1",
    "inbox_id": "inbox-1",
    "sequence": 7,
}


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        (
            "messages register --agent bob",
            {"verb": "messages_register", "agent": "bob"},
        ),
        (
            "messages register --agent bob --allow-connection c1 --allow-connection c2",
            {
                "verb": "messages_register",
                "agent": "bob",
                "allow_connections": ["c1", "c2"],
            },
        ),
        ("messages list", {"verb": "messages_list"}),
        (
            "messages unregister --agent bob",
            {"verb": "messages_unregister", "agent": "bob"},
        ),
        (
            "messages send --agent me --target agent:bob --message '-x "
            "--json' --submission-id s-1",
            {
                "verb": "messages_send",
                "message": "-x --json",
                "agent": "me",
                "target": "agent:bob",
                "submission_id": "s-1",
            },
        ),
        (
            "messages read --inbox inbox-1 --after 5 --limit 9 --wait 2",
            {
                "verb": "messages_read",
                "inbox_id": "inbox-1",
                "after": 5,
                "limit": 9,
                "wait_s": 2.0,
            },
        ),
        (
            "messages state --inbox inbox-1",
            {"verb": "messages_state", "inbox_id": "inbox-1"},
        ),
        (
            "bridge message ack --provider claude --message-id msg-1 "
            "--delivery processed",
            {
                "verb": "session_ack",
                "provider": "claude",
                "message_id": "msg-1",
                "delivery": "processed",
            },
        ),
        (
            "bridge message reply --provider claude --inbox inbox-1 "
            "--message yes --submission-id s-2",
            {
                "verb": "session_reply",
                "provider": "claude",
                "message": "yes",
                "submission_id": "s-2",
                "inbox_id": "inbox-1",
            },
        ),
        (
            "bridge message send --provider claude --target agent:bob "
            "--message hello --submission-id s-3",
            {
                "verb": "session_send",
                "provider": "claude",
                "target": "agent:bob",
                "message": "hello",
                "submission_id": "s-3",
            },
        ),
        (
            "bridge message read --provider claude --after 3 --wait 1.5",
            {
                "verb": "session_read",
                "provider": "claude",
                "after": 3,
                "wait_s": 1.5,
            },
        ),
        (
            "bridge message peers --provider claude",
            {"verb": "session_peers", "provider": "claude"},
        ),
        (
            "bridge message status --provider claude msg-1",
            {"verb": "session_message_status", "provider": "claude", "id": "msg-1"},
        ),
        (
            "bridge message purpose --provider claude --purpose Review",
            {"verb": "session_purpose", "provider": "claude", "purpose": "Review"},
        ),
    ],
)
def test_a_command_asks_exactly_this(
    run: Run, daemon: FakeDaemon, words: str, request_: dict[str, Any]
) -> None:
    daemon.replies[request_["verb"]] = ACCEPTED

    ran = run(*shlex.split(words), "--json")

    assert ran.exit_code == 0
    assert ran.document() == ACCEPTED
    assert daemon.asked == [request_]
    assert run(*shlex.split(words)).exit_code == 0


def test_a_send_without_an_id_gets_one_before_it_goes_out(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["messages_send"] = ACCEPTED

    for _ in range(2):
        run("messages", "send", "--target", "agent:bob", "--message", "x")

    first, second = (request["submission_id"] for request in daemon.asked)
    assert first.startswith("sub-")
    assert first != second


def test_a_send_whose_answer_was_lost_says_how_to_repeat_it(
    run: Run, paths: Paths
) -> None:
    seen: list[bytes] = []

    def leave(client: socket.socket) -> None:
        seen.append(read_call(client))

    with answering(paths.run, leave):
        ran = run("messages", "send", "--target", "agent:bob", "--message", "x")

    assert ran.exit_code == 1
    assert "may or may not have happened" in ran.err
    submission_id = ran.err.split("--submission-id ")[1].split(":")[0]
    assert submission_id.encode() in seen[0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ACCEPTED, ["Accepted as msg-1 in inbox-1", "not yet read"]),
        (
            ACCEPTED
            | {"recipient": {"name": "bob", "state": "offline", "since": "noon"}},
            ["bob is offline since noon"],
        ),
        (
            ACCEPTED | {"recipient": {"name": "me", "state": "mailbox", "since": None}},
            ["No chat is attached as me: it waits in that mailbox."],
        ),
        (
            {"status": "queued", "submission_id": "sub-9", "note": "It goes out."},
            ["Queued as sub-9", "It goes out."],
        ),
    ],
)
def test_what_became_of_a_message_is_said_in_words(
    run: Run, daemon: FakeDaemon, answer: dict[str, Any], words: list[str]
) -> None:
    daemon.replies["messages_send"] = answer

    out = run("messages", "send", "--target", "agent:bob", "--message", "x").out

    assert all(word in out for word in words)


def test_a_read_marks_each_line_of_a_message(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["messages_read"] = {
        "messages": [
            {
                "sequence": 7,
                "sender": "eve\x1b]0;x\x07",
                "sent_at": "noon",
                "message_id": "msg-1",
                "inbox_id": "inbox-1",
                "delivery": "stored",
                "message": "one\nAccepted as msg-9\x1b[2J\ttwo",
            }
        ],
        "next_cursor": 7,
    }

    lines = run("messages", "read", "--agent", "bob").out.splitlines()

    assert lines[0].startswith("7  eve\\u{1b}]0;x\\u{7}  noon  msg-1")
    assert lines[1:3] == ["  | one", "  | Accepted as msg-9\\u{1b}[2J\ttwo"]
    assert lines[3] == "Go on with: --after 7"


def test_a_read_says_how_far_each_message_came_and_who_is_gone(
    run: Run, daemon: FakeDaemon
) -> None:
    signs = [
        {"delivery": "stored", "observed": "unsure"},
        {"delivery": "processed", "observed": "offered"},
        {"delivery": "stored", "delivery_error": "connection_revoked"},
    ]
    daemon.replies["messages_read"] = {
        "messages": [{"message": "x", **each} for each in signs],
        "next_cursor": 7,
        "sides": [
            {"name": "bob", "offline_since": "noon\x1b[2J"},
            {"name": "alice", "offline_since": None},
        ],
    }

    out = run("messages", "read", "--inbox", "inbox-1").out

    heads = [line for line in out.splitlines() if line.startswith("-")]
    assert [head.rpartition("  ")[2] for head in heads] == [
        "stored, unsure",
        "processed",
        "stored, connection_revoked",
    ]
    assert "bob is offline since noon\\u{1b}[2J." in out
    assert "alice is offline" not in out


def test_what_became_of_a_message_is_a_sentence_beside_the_facts(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["session_message_status"] = {
        "message_id": "msg-1",
        "delivery": "stored",
        "delivery_at": None,
        "delivery_error": "",
        "recipient": {"name": "bob", "state": "connected", "offline_since": None},
        "note": "The server has it; bob has not acknowledged it.",
    }

    ran = run("bridge", "message", "status", "--provider", "claude", "msg-1")

    assert ran.out.splitlines() == [
        "message_id   msg-1",
        "delivery     stored",
        "delivery_at  -",
        "recipient    name bob, state connected",
        "note         The server has it; bob has not acknowledged it.",
    ]


def test_the_state_of_an_inbox_is_a_table_without_texts(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["messages_state"] = {
        "messages": [
            {
                "sequence": 1,
                "sender": "alice",
                "recipient": "bob",
                "sent_at": "noon",
                "message_id": "msg-1",
                "delivery": "admitted",
                "delivery_at": "later",
            }
        ],
        "sides": [{"name": "bob", "offline_since": "noon"}],
    }

    head, row, gone = run("messages", "state", "--inbox", "i").out.splitlines()

    assert head.split() == [
        "SEQUENCE",
        "FROM",
        "TO",
        "SENT",
        "MESSAGE",
        "RECEIPT",
        "AT",
    ]
    assert row.split() == ["1", "alice", "bob", "noon", "msg-1", "admitted", "later"]
    assert gone == "bob is offline since noon."


def test_an_account_without_names_is_told_how_to_register_one(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["messages_list"] = {"agents": []}
    daemon.replies["session_peers"] = {"agents": []}

    assert "messages register --agent NAME" in run("messages", "list").out
    peers = run("bridge", "message", "peers", "--provider", "claude").out
    assert peers == "No other names are registered.\n"


def test_an_empty_read_says_so(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["messages_read"] = {"messages": [], "next_cursor": 7}

    out = run("messages", "read", "--agent", "bob").out

    assert out == "No new messages. Go on with: --after 7\n"


def test_the_directory_shows_who_is_there(run: Run, daemon: FakeDaemon) -> None:
    daemon.replies["messages_list"] = {
        "agents": [
            {
                "name": "bob",
                "provider": "claude",
                "connected": True,
                "since": "noon",
                "purpose": "Review\nall",
            }
        ]
    }

    lines = run("messages", "list").out.splitlines()

    assert lines[1].split() == ["bob", "claude", "connected", "noon", "Review\\nall"]
