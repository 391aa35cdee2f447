"""A line in Qwen Code's input file: what is written, and when nothing is."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import OfferId, SessionId
from bridge.core.records import OfferOutcome
from bridge.core.routing import Parcel, Part
from bridge.errors import Refused
from bridge.routes.qwen_input import QwenInput, line


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An input file as its person made it."""
    path = tmp_path / "prompts"
    path.touch(0o600)
    return path


def way(path: Path, is_current: bool = True) -> QwenInput:
    return QwenInput(path, lambda: is_current)


def parcel(text: str) -> Parcel:
    return Parcel(
        OfferId("off-1"), SessionId("abc-1"), text, "ab" * 8, (Part("head", text),)
    )


async def test_an_offer_is_one_line_after_what_is_there(path: Path) -> None:
    path.write_text('{"type":"submit","text":"hi"}\n')

    reached = await way(path).offer(parcel("two\nlines"))

    assert (reached.outcome, reached.evidence) == (OfferOutcome.EMITTED, "")
    _, added = path.read_text().splitlines()
    assert json.loads(added) == {"type": "submit", "text": "two\nlines"}
    assert way(path).address == f"qwen+input://{path}"


@given(st.text() | st.text(alphabet="\\@a"))
def test_a_line_is_ascii_and_names_no_file_of_the_host(text: str) -> None:
    """The host reads a file into the prompt after each `@` without a backslash."""
    said = line(text)

    assert said.isascii()
    assert said.count(b"\n") == 1
    heard = json.loads(said)["text"]
    assert all(heard[place - 1 : place] == "\\" for place in _places(heard, "@"))
    assert heard.replace("\\@", "@") == text


def _places(text: str, letter: str) -> list[int]:
    return [place for place, each in enumerate(text) if each == letter]


async def test_nothing_is_written_once_another_chat_is_open_there(path: Path) -> None:
    reached = await way(path, is_current=False).offer(parcel("hello"))

    assert (reached.outcome, reached.is_over) == (OfferOutcome.NOT_EMITTED, True)
    assert path.read_bytes() == b""
    assert not await way(path, is_current=False).is_open()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
async def test_a_file_that_others_can_write_is_no_way(path: Path, mode: int) -> None:
    path.chmod(mode)

    with pytest.raises(Refused, match="chmod 600"):
        way(path).check()
    assert (await way(path).offer(parcel("x"))).outcome is OfferOutcome.NOT_EMITTED
    assert path.read_bytes() == b""


async def test_a_link_a_fifo_a_folder_and_nothing_are_no_way(tmp_path: Path) -> None:
    (tmp_path / "real").touch(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "folder").mkdir()

    for name in ("link", "fifo", "folder", "missing"):
        assert not await way(tmp_path / name).is_open()
        reached = await way(tmp_path / name).offer(parcel("x"))
        assert reached.outcome is OfferOutcome.NOT_EMITTED
    assert (tmp_path / "real").read_bytes() == b""


async def test_a_file_with_a_second_name_is_no_way(path: Path) -> None:
    """Who may write into its folder could have put another file of ours there."""
    path.with_name("second").hardlink_to(path)

    reached = await way(path).offer(parcel("hi"))

    assert reached.outcome is OfferOutcome.NOT_EMITTED
    assert "more than one name" in reached.reason
    assert path.read_bytes() == b""


@pytest.mark.parametrize(("room", "outcome"), [(0, "not_emitted"), (7, "unknown")])
async def test_a_file_that_takes_no_more_says_what_came_of_it(
    path: Path, room: int, outcome: str
) -> None:
    limit, action = resource.RLIMIT_FSIZE, signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(limit)
    resource.setrlimit(limit, (room, before[1]))
    try:
        reached = await way(path).offer(parcel("hi"))
    finally:
        resource.setrlimit(limit, before)
        signal.signal(signal.SIGXFSZ, action)

    assert reached.outcome == outcome
    assert path.stat().st_size == room


async def test_the_line_of_another_program_is_not_broken_into(path: Path) -> None:
    path.write_text('{"type":"sub')

    assert not await way(path).is_open()
    assert (await way(path).offer(parcel("x"))).outcome is OfferOutcome.NOT_EMITTED
    assert path.read_text() == '{"type":"sub'
