"""How things are shown: safely, in colour only where it is wanted, as pasted."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.cli.present import ago, as_json, own_program, say, styled, table


class Terminal(io.StringIO):
    """An output that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert styled("x", bold=True) == "x"
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert styled("x", bold=True) != "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("x", bold=True) == "x"


@given(st.text())
def test_no_text_reaches_the_terminal_raw(text: str) -> None:
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        say(text)

    allowed = {"\n", "\t"}
    shown = output.getvalue()
    assert not [c for c in shown if ord(c) < 32 and c not in allowed]
    assert not {"\x7f", "\x9b", "\u202e", "\u2066", "\ufeff"} & set(shown)


@given(st.text())
def test_json_is_ascii_without_controls_and_means_the_same(text: str) -> None:
    document = as_json({"text": text})

    assert document.replace("\n", "").isprintable()
    assert document.isascii()
    assert json.loads(document) == {"text": text}


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_a_table_has_one_line_for_each_row(rows: list[tuple[str, str]]) -> None:
    assert len(table(("A", "B"), rows).split("\n")) == len(rows) + 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "-"),
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3600, "1 h"),
        (172_800, "2 d"),
    ],
)
def test_how_long_ago_is_said_in_the_largest_unit(
    seconds: float | None, words: str
) -> None:
    assert ago(seconds) == words


def test_the_program_is_named_as_it_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my tools"
    folder.mkdir()
    program = folder / "agentworks"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "argv", [str(program)])

    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert own_program() == f"'{program}'"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin")
    assert own_program() == "agentworks"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bridge" / "__main__.py")])
    assert own_program() == f"{sys.executable} -m bridge"
