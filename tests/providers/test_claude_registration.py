"""A registration file counts only when everything about it is right."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.core.caller import ProcessFacts
from bridge.errors import Refused
from bridge.providers.claude_registration import (
    LIMIT_BYTES,
    Inbox,
    Registration,
    inbox_of,
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
        protocol=1,
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
        {"cwd": "project"},
        {"cwd": "/pro\0ject"},
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


# ---- the inbox -----------------------------------------------------------------------

TOKEN = "0123456789abcdef0123456789abcdef"


def write_key(sessions: Path, **changes: object) -> Path:
    mark = hashlib.sha256(SAID["messagingSocketPath"].encode()).hexdigest()
    path = sessions / f"{SAID['pid']}.{mark}.key"
    key = {"peerToken": TOKEN, "procStart": SAID["procStart"]}
    path.write_text(json.dumps(key | changes))
    path.chmod(0o600)
    return path


def inbox(sessions: Path, session_id: str = SAID["sessionId"]) -> Inbox:
    home = str(sessions.parent.parent)
    return inbox_of(claude_process(), {"HOME": home}, session_id)


def reason(sessions: Path, session_id: str = SAID["sessionId"]) -> str:
    """Why this session has no inbox."""
    with pytest.raises(Refused) as caught:
        inbox(sessions, session_id)
    return caught.value.message


def test_a_session_has_an_inbox_with_its_token_and_the_token_is_never_shown(
    sessions: Path,
) -> None:
    path = write(sessions)
    write_key(sessions)

    found = inbox(sessions)

    assert found == Inbox(str(path), "/tmp/cc-socks/13099.sock", TOKEN)
    assert TOKEN not in repr(found) + str(found) + f"{found}"


def test_a_version_without_an_inbox_is_named(sessions: Path) -> None:
    old = captured("claude/registration_2.1.197")
    same = {name: SAID[name] for name in ("pid", "procStart", "sessionId")}
    write(sessions).write_text(json.dumps(old | same))

    assert "Claude Code 2.1.197 has no inbox" in reason(sessions)


@pytest.mark.parametrize("protocol", [0, 2, 99])
def test_a_protocol_that_is_not_known_is_not_spoken(
    sessions: Path, protocol: int
) -> None:
    write(sessions, peerProtocol=protocol)

    assert f"a protocol that is not known ({protocol})" in reason(sessions)


def test_another_session_in_the_same_process_is_another_chat(sessions: Path) -> None:
    write(sessions)

    assert "another chat open now" in reason(sessions, "the-chat-before-clear")


@pytest.mark.parametrize("changes", [{"pid": 1}, {"procStart": "97394"}])
def test_a_registration_of_a_dead_or_reused_pid_is_not_trusted(
    sessions: Path, changes: dict[str, object]
) -> None:
    write(sessions, **changes)

    assert "no registration that can be trusted" in reason(sessions)


def test_without_its_key_the_text_goes_without_a_token(sessions: Path) -> None:
    write(sessions)
    assert inbox(sessions).token == ""

    path = write_key(sessions)
    path.chmod(0o660)
    assert inbox(sessions).token == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"procStart": "97394"},
        {"peerToken": "x" * 257},
        {"peerToken": None},
        {"peerToken": "x" * LIMIT_BYTES},
    ],
)
def test_a_key_of_another_process_or_too_big_is_no_key(
    sessions: Path, changes: dict[str, object]
) -> None:
    write(sessions)
    write_key(sessions, **changes)

    assert inbox(sessions).token == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_key_of_another_user_is_no_key(sessions: Path) -> None:
    write(sessions)
    os.chown(write_key(sessions), 65534, 65534)

    assert inbox(sessions).token == ""


def test_a_strange_version_is_shown_on_one_line(sessions: Path) -> None:
    write(sessions, version="2\n\x1b[31m", messagingSocketPath="")

    assert reason(sessions).isprintable()
