"""A registration file counts only when everything about it is right."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.core.caller import ProcessFacts
from bridge.providers.claude_registration import (
    LIMIT_BYTES,
    Registration,
    registration_of,
)
from tests.providers.captured import captured, process

SAID = captured("claude/registration_2.1.332")


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    folder = tmp_path / ".claude" / "sessions"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def claude_process() -> ProcessFacts:
    facts = process("/opt/claude", "claude", pid=SAID["pid"])
    return replace(facts, start=int(SAID["procStart"]), uid=os.geteuid())


def write(sessions: Path, **changes: object) -> Path:
    path = sessions / f"{SAID['pid']}.json"
    path.write_text(json.dumps(SAID | changes))
    path.chmod(0o644)
    return path


def read(sessions: Path, **environment: str) -> Registration | None:
    home = str(sessions.parent.parent)
    return registration_of(claude_process(), {"HOME": home} | environment)


def test_a_live_process_says_which_chat_it_has_open(sessions: Path) -> None:
    write(sessions)

    assert read(sessions) == Registration(
        session_id=SAID["sessionId"],
        version="2.1.332",
        folder="/home/user/project",
        socket_path="/tmp/cc-socks/13099.sock",
        name="proj-b4",
        status="idle",
    )


def test_an_older_version_has_no_inbox(sessions: Path) -> None:
    old = captured("claude/registration_2.1.197")
    same = {name: SAID[name] for name in ("pid", "procStart")}
    path = write(sessions)
    path.write_text(json.dumps(old | same))

    found = read(sessions)

    assert found is not None
    assert (found.version, found.socket_path) == ("2.1.197", "")


def test_the_folder_is_where_the_process_itself_was_told(sessions: Path) -> None:
    write(sessions)
    config = str(sessions.parent)

    assert read(sessions, HOME="/nowhere", CLAUDE_CONFIG_DIR=config) is not None
    assert read(sessions, CLAUDE_CONFIG_DIR="/nowhere") is None


@pytest.mark.parametrize(
    "environment",
    [None, {}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": "/nul\0"}],
)
def test_without_a_home_there_is_no_registration(
    environment: Mapping[str, str] | None,
) -> None:
    assert registration_of(claude_process(), environment) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": 1},
        {"procStart": "97394"},
        {"procStart": 97393},
        {"sessionId": "two words"},
        {"sessionId": None},
        {"version": "9" * 65},
    ],
)
def test_a_file_about_another_process_or_with_a_wrong_field_is_none(
    sessions: Path, changes: dict[str, object]
) -> None:
    write(sessions, **changes)

    assert read(sessions) is None


def test_what_is_not_json_or_too_big_is_none(sessions: Path) -> None:
    path = write(sessions)
    for content in (
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"[" * 50_000,
        b" " * LIMIT_BYTES + b"{}",
    ):
        path.write_bytes(content)

        assert read(sessions) is None


def test_a_link_a_folder_and_a_fifo_in_its_place_are_none(sessions: Path) -> None:
    path = write(sessions)
    real = path.rename(path.with_suffix(".real"))
    path.symlink_to(real)
    assert read(sessions) is None

    path.unlink()
    path.mkdir()
    assert read(sessions) is None

    path.rmdir()
    os.mkfifo(path)
    assert read(sessions) is None


def test_what_others_could_have_written_is_none(sessions: Path) -> None:
    path = write(sessions)
    path.chmod(0o664)
    assert read(sessions) is None

    path.chmod(0o644)
    sessions.chmod(0o777)
    assert read(sessions) is None


def test_a_linked_sessions_folder_is_none(sessions: Path) -> None:
    write(sessions)
    moved = sessions.rename(sessions.with_name("moved"))
    sessions.symlink_to(moved)

    assert read(sessions) is None


def test_no_file_is_none(sessions: Path) -> None:
    assert read(sessions) is None
