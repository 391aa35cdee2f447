"""A log line is one line, and holds no body and no token."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import EXIT_CONFIG, Refused
from bridge.log import HIDDEN, forward_libraries, open_log, open_log_file, safe_text
from tests.core.examples import ANY_TEXT
from tests.fakes.clock import FakeClock

TOKEN = "awt_J3kq9ZxP0aLm4Vt7BsQe2Rn8Yc5Hd1Wf"
MESSAGE_ID = "msg-019acf2e-5b00-7000-8000-000000000001"


def lines_of(**values: object) -> list[str]:
    stream = io.StringIO()
    open_log(stream, FakeClock()).info("offered", **values)
    return stream.getvalue().splitlines()


def read_one(**values: object) -> dict[str, object]:
    (line,) = lines_of(**values)
    read: dict[str, object] = json.loads(line)
    return read


def test_a_line_says_when_what_and_how_grave() -> None:
    assert read_one(count=3, message_id=MESSAGE_ID) == {
        "at": "2026-09-21T14:13:20Z",
        "event": "offered",
        "level": "info",
        "count": 3,
        "message_id": MESSAGE_ID,
    }


@pytest.mark.parametrize(
    "key",
    ["body", "message", "token", "authorization", "access_token", "refresh-token",
     "Authorization", "prompt", "text", "purpose", "password"],
)  # fmt: skip
def test_what_is_said_or_secret_is_hidden_by_its_key(key: str) -> None:
    assert read_one(**{key: "hello"})[key] == HIDDEN
    assert read_one(headers={key: "hello"})["headers"] == {key: HIDDEN}


@pytest.mark.parametrize(
    "text",
    [TOKEN, f"Authorization: Bearer {TOKEN}", "bearer short", f"got {TOKEN}!",
     f"https://example/?token={TOKEN}", f"['{TOKEN}']", TOKEN.encode().hex()],
)  # fmt: skip
def test_a_token_is_hidden_wherever_it_stands(text: str) -> None:
    shown = json.dumps(read_one(reason=text, error=ValueError(text), all=[text]))

    assert TOKEN not in shown
    assert "short" not in shown
    assert TOKEN.encode().hex() not in shown
    assert shown.count(HIDDEN) >= 3


@pytest.mark.parametrize(
    "text",
    [
        MESSAGE_ID,
        "6720d3c6-2e01-405e-aff8-4c79d2bc7444:4242:97393",
        "/home/user/.local/state/agentworks/log/bridge.log",
        "the child token expired and was refreshed",
        "a-name-of-many-letters-and-hyphens",
    ],
)
def test_ids_paths_and_sentences_stay(text: str) -> None:
    assert safe_text(text) == text


@given(ANY_TEXT, ANY_TEXT)
def test_a_logged_text_never_splits_its_line(name: str, reason: str) -> None:
    (line,) = lines_of(name=name, reason=[reason], **{"k\n\x1b": reason})

    assert line.isascii()
    assert line.isprintable()


@given(st.recursive(ANY_TEXT | st.binary() | st.none() | st.floats(), st.lists))
def test_every_value_can_be_logged(value: object) -> None:
    assert len(lines_of(value=value)) == 1


def test_a_value_that_contains_itself_ends() -> None:
    loop: list[object] = []
    loop.append(loop)

    assert "[deep]" in lines_of(value=loop)[0]
    assert read_one(value=b"secret", kind=object)["value"] == "[6 bytes]"
    assert len(str(read_one(value="x " * 9_000)["value"])) < 2_100


def test_an_exception_is_one_line_without_its_token() -> None:
    stream = io.StringIO()
    try:
        raise RuntimeError(f"refused {TOKEN}\nand more")
    except RuntimeError:
        open_log(stream, FakeClock()).exception("broken")

    (line,) = stream.getvalue().splitlines()
    assert "RuntimeError" in line
    assert TOKEN not in line


def test_a_log_that_cannot_be_written_stops_nobody() -> None:
    stream = io.StringIO()
    log = open_log(stream, FakeClock())
    stream.close()

    log.error("nobody_hears")


def test_the_level_leaves_out_what_is_below() -> None:
    stream = io.StringIO()
    log = open_log(stream, FakeClock(), level="warning").bind(part="stream")
    log.info("small")
    log.warning("large")

    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["part"] == "stream"


# ---- libraries -------------------------------------------------------------------


@pytest.fixture
def forwarded() -> Iterator[io.StringIO]:
    """A stream that gets what libraries log; their set-up is put back after."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    stream = io.StringIO()
    forward_libraries(open_log(stream, FakeClock()))
    yield stream
    for added in set(root.handlers) - set(before):
        if type(added).__module__ == "bridge.log":
            root.removeHandler(added)
    root.setLevel(level)
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_library_says_where_and_not_what(forwarded: io.StringIO) -> None:
    logging.getLogger("httpx").info("HTTP Request: POST %s", TOKEN)
    logging.getLogger("mcp.server").warning("bad arguments: %s", "the body")

    (line,) = forwarded.getvalue().splitlines()
    read = json.loads(line)
    assert read["library"] == "mcp.server"
    assert read["where"].startswith("test_log.py:")
    assert "the body" not in line


def test_a_librarys_error_is_named(forwarded: io.StringIO) -> None:
    try:
        raise OSError("the body")
    except OSError:
        logging.getLogger("hypercorn.error").exception("it broke")

    read = json.loads(forwarded.getvalue())
    assert (read["error"], read["gravity"]) == ("OSError", "error")
    assert "the body" not in forwarded.getvalue()


# ---- the file --------------------------------------------------------------------


def test_the_log_file_is_private_and_appended_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "bridge.log"
    for _ in range(2):
        with open_log_file(path) as stream:
            open_log(stream, FakeClock()).info("started")

    assert len(path.read_text().splitlines()) == 2
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_grown_log_file_starts_anew_and_keeps_one_older(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "bridge.log"
    path.write_bytes(b"x" * (5 * 1024 * 1024 + 1))
    path.chmod(0o600)

    open_log_file(path).close()

    assert path.stat().st_size == 0
    assert (tmp_path / "bridge.log.1").stat().st_size > 5 * 1024 * 1024


def test_a_log_in_a_shared_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)

    with pytest.raises(Refused, match="must be yours alone"):
        open_log_file(tmp_path / "bridge.log")


def put_a_link(place: Path) -> None:
    place.symlink_to(place.with_name("elsewhere"))


def put_an_open_file(place: Path) -> None:
    place.touch()
    place.chmod(0o644)


@pytest.mark.parametrize("put", [put_a_link, put_an_open_file, os.mkfifo, Path.mkdir])
def test_a_log_that_is_not_our_own_plain_file_is_refused_and_does_not_hang(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    tmp_path.chmod(0o700)
    place = tmp_path / "bridge.log"
    put(place)

    with pytest.raises(Refused, match=r"bridge\.log") as caught:
        open_log_file(place)

    assert caught.value.exit_code == EXIT_CONFIG
    assert not (tmp_path / "elsewhere").exists()
