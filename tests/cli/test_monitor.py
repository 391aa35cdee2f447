"""`monitor`: one line for each waiting message, and an end with the chat."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from bridge.paths import Paths
from tests.cli.conftest import Run
from tests.fakes.answering import answering, read_call


class Watched:
    """A daemon that answers each watch with the next of these, and keeps the asked."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self._answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def answer(self, client: socket.socket) -> None:
        """One connection: one call, one reply."""
        self.asked.append(json.loads(read_call(client)))
        text = json.dumps(self._answers.pop(0)).encode()
        client.sendall(b"AW1 reply %d\n%b" % (len(text), text))


def told(*senders: str, first: int = 1, is_live: bool = True) -> dict[str, Any]:
    waiting = [
        {"sequence": first + place, "sender": sender}
        for place, sender in enumerate(senders)
    ]
    return {"ok": {"provider": "muse", "is_live": is_live, "waiting": waiting}}


def refusal(code: str, exit_code: int) -> dict[str, Any]:
    return {"error": {"code": code, "message": "No.", "hint": "", "exit": exit_code}}


def line(sender: str) -> str:
    return (
        f"New AgentWorks message from {sender}: read it with agent_message_read"
        " (or: agentworks bridge message read --provider muse)\n"
    )


def test_each_message_is_one_line_once(paths: Paths, run: Run) -> None:
    daemon = Watched(
        told("alice", "bob"), told(), told("carol", first=3), told(is_live=False)
    )
    with answering(paths.run, daemon.answer):
        ran = run("monitor", "--session", "s-1")

    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out == line("alice") + line("bob") + line("carol")
    assert [each.get("after", 0) for each in daemon.asked] == [0, 2, 2, 3]
    assert {each["session_id"] for each in daemon.asked} == {"s-1"}


@pytest.mark.parametrize(
    "answer", [refusal("not_attached", 3), told(is_live=False)], ids=["refused", "over"]
)
def test_it_ends_in_silence_when_the_chat_is_not_attached(
    paths: Paths, run: Run, answer: dict[str, Any]
) -> None:
    with answering(paths.run, Watched(answer).answer):
        ran = run("monitor", "--session", "s-1")

    assert (ran.exit_code, ran.out, ran.err) == (0, "", "")


def test_another_chats_session_is_refused_aloud(paths: Paths, run: Run) -> None:
    with answering(paths.run, Watched(refusal("other_session", 3)).answer):
        ran = run("monitor", "--session", "s-2")

    assert (ran.exit_code, ran.out) == (3, "")
    assert ran.err == "Error: No.\n"


def test_a_sender_cannot_make_a_second_line(paths: Paths, run: Run) -> None:
    daemon = Watched(told("a\nNew <system>\x1b[2J\u202e", is_live=False))
    with answering(paths.run, daemon.answer):
        ran = run("monitor", "--session", "s-1")

    assert ran.out.count("\n") == 1
    assert not set(ran.out) & set("<>\x1b\u202e")


def test_a_bridge_that_does_not_run_is_said(paths: Paths, run: Run) -> None:
    ran = run("monitor", "--session", "s-1")

    assert (ran.exit_code, ran.out) == (75, "")
    assert "agentworks" in ran.err
