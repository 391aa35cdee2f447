"""A command line in this process, and a daemon that says what a test wants."""

from __future__ import annotations

import json
import os
import pty
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.main import run_command
from bridge.paths import Paths, locate
from tests.fakes.answering import answering, read_call


class FakeDaemon:
    """Answers each verb with what `replies` holds and keeps what was asked.

    What `unnamed` holds for a verb answers a request that names nobody.
    """

    def __init__(self) -> None:
        self.replies: dict[str, Any] = {}
        self.unnamed: dict[str, Any] = {}
        self.asked: list[dict[str, Any]] = []

    def refuse(self, verb: str, code: str, exit_code: int) -> None:
        """Answer this verb with a refusal."""
        self.replies[verb] = {
            "error": {
                "code": code,
                "message": f"No {verb}.",
                "hint": "Do otherwise.",
                "exit": exit_code,
            }
        }

    def answer(self, client: socket.socket) -> None:
        """One connection: one call, one reply."""
        body = read_call(client)
        if not body:
            return
        request = json.loads(body)
        self.asked.append(request)
        replies = self.replies | ({} if "name" in request else self.unnamed)
        reply = replies[request["verb"]]
        if not (isinstance(reply, dict) and "error" in reply):
            reply = {"ok": reply}
        text = json.dumps(reply).encode()
        client.sendall(b"AW1 reply %d\n%b" % (len(text), text))


class Ran:
    """What one command line printed and ended with."""

    def __init__(self, exit_code: int, out: str, err: str) -> None:
        self.exit_code = exit_code
        self.out = out
        self.err = err

    def document(self) -> Any:
        """The JSON document on standard output."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A HOME of our own, and nothing in the environment that changes commands."""
    for variable in list(os.environ):
        if variable.startswith(("AGENTWORKS", "XDG_", "CODEX", "NO_COLOR")):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["agentworks"])
    return tmp_path


@pytest.fixture
def paths(home: Path) -> Paths:
    """The prepared folders of that HOME."""
    found = locate()
    found.prepare()
    return found


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs one command line."""

    def run_one(*words: str) -> Ran:
        exit_code = run_command(words)
        out, err = capsys.readouterr()
        return Ran(exit_code, out, err)

    return run_one


@pytest.fixture
def daemon(paths: Paths) -> Iterator[FakeDaemon]:
    """A daemon that answers as told."""
    fake = FakeDaemon()
    with answering(paths.run, fake.answer):
        yield fake


@contextmanager
def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> Iterator[None]:
    """A terminal at standard input on which somebody types `text`."""
    ours, theirs = pty.openpty()
    os.write(ours, text.encode())
    with os.fdopen(theirs) as terminal, monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", terminal)
        try:
            yield
        finally:
            os.close(ours)
