"""Which Codex processes serve others, by their command lines."""

from __future__ import annotations

import pytest

from bridge.core.caller import ProcessFacts
from bridge.providers import codex_server
from tests.providers.captured import process

HOME = {"HOME": "/home/user"}
USUAL = "app-server-control/app-server-control.sock"


def codex(*arguments: str, program: str = "/opt/codex") -> ProcessFacts:
    return process(program, "codex", *arguments)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("app-server", "--listen", "unix:///run/own.sock"), "/run/own.sock"),
        (("app-server", "--listen=unix:///run/own.sock"), "/run/own.sock"),
        (("-c", "x=1", "app-server", "--listen", "unix:///a"), "/a"),
        (("app-server", "--listen", "off", "--listen", "unix:///a"), "/a"),
        (
            ("app-server", "--listen", "unix://", "--managed-daemon"),
            f"/home/user/.codex/{USUAL}",
        ),
        (("app-server", "--listen", "unix://relative"), None),
        (("app-server", "--listen", "ws://127.0.0.1:4500"), None),
        (("app-server", "--listen"), None),
        (("app-server",), None),
        (("--listen", "unix:///a"), None),
        (("exec", "app-server --listen unix:///a"), None),
        (("--no-daemon",), None),
        ((), None),
    ],
)
def test_a_server_listens_where_its_command_line_says(
    arguments: tuple[str, ...], path: str | None
) -> None:
    assert codex_server.own_socket(codex(*arguments), HOME) == path


def test_the_usual_place_is_below_the_home_that_the_process_was_started_with() -> None:
    facts = codex("app-server", "--listen", "unix://", "--managed-daemon")

    chosen = codex_server.own_socket(facts, {**HOME, "CODEX_HOME": "/data/codex"})

    assert chosen == f"/data/codex/{USUAL}"
    for nowhere in ({"CODEX_HOME": "relative"}, {}):
        assert codex_server.own_socket(facts, nowhere) is None


def test_another_program_is_no_server_whatever_its_arguments_are() -> None:
    facts = codex("app-server", "--listen", "unix:///a", program="/usr/bin/python3")

    assert not codex_server.is_server(facts)
    assert codex_server.own_socket(facts, HOME) is None


@pytest.mark.parametrize(
    ("arguments", "is_once"),
    [
        (("exec", "hello"), True),
        (("--json", "e", "hello"), True),
        (("exec", "resume", "x"), True),
        (("resume", "x"), False),
        (("app-server", "--listen", "unix://"), False),
    ],
)
def test_codex_exec_is_told_from_a_chat(
    arguments: tuple[str, ...], is_once: bool
) -> None:
    assert codex_server.runs_once(codex(*arguments)) is is_once
