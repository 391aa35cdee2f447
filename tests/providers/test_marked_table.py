"""Our table comes and goes without a trace in any TOML file."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.providers.marked_table import (
    is_marked,
    parsed,
    with_block,
    without_block,
)
from bridge.providers.strict_json import NotStrict

BLOCK = '# begin\n[mcp_servers.ours]\ncommand = "/pipe"\n# end\n'
LINES = st.sampled_from(
    [
        "",
        "# a comment",
        'model = "x"',
        "\tnumber = 1_000",
        "[projects.'/home/user']",
        "[mcp_servers.theirs]",
        'command = "theirs"',
        "[[profiles]]",
        "list = [1,\n  2]",
        "mcp_servers.dotted.command = 'x'",
    ]
)


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """A TOML text with or without its last line ended, of \\n or \\r\\n lines."""
    lines = draw(st.lists(LINES, max_size=6))
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))
    text = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return draw(st.sampled_from(["", "\n", "# only this", "a = 1"]))
    return text


@given(toml_texts())
def test_the_table_comes_and_goes_without_a_trace(text: str) -> None:
    grown = with_block(text, BLOCK)
    servers = parsed(grown)["mcp_servers"]

    assert isinstance(servers, dict)
    assert servers["ours"] == {"command": "/pipe"}
    assert grown.startswith(text)
    assert without_block(grown, BLOCK) == text


def test_what_was_changed_inside_our_table_goes_with_it() -> None:
    grown = with_block("a = 1\n", BLOCK)
    changed = grown.replace("# end", 'approve = "yes"\n# end').replace("/pipe", "/x")

    assert is_marked(changed, BLOCK)
    assert without_block(changed, BLOCK) == "a = 1\n"
    assert not is_marked(grown.replace("# begin", "# our table"), BLOCK)


def test_a_file_of_our_own_leaves_nothing() -> None:
    assert with_block(None, BLOCK) == BLOCK
    assert without_block(BLOCK, BLOCK) is None


def test_what_was_added_after_our_table_stays() -> None:
    grown = with_block("a = 1\n", BLOCK) + "\n[theirs]\nb = 2\n"

    assert without_block(grown, BLOCK) == "a = 1\n\n[theirs]\nb = 2\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = \n", 1),
        ("a = 1\nb\n", 2),
        ("a = 1\n[", 2),
        ("\ufeffa = 1", 1),
        ("mcp_servers = {}\n", 3),
        ('[mcp_servers]\nours = {command = "x"}\n', 4),
        ("[[mcp_servers]]\n", 3),
        ("mcp_servers = 1\n", 3),
        ("a = " + "[" * 100_000, 1),
    ],
)
def test_a_text_that_cannot_take_the_table_is_refused(text: str, line: int) -> None:
    with pytest.raises(NotStrict) as refused:
        with_block(text, BLOCK)

    assert refused.value.line >= line


def test_a_line_that_would_move_to_another_table_is_named() -> None:
    """What follows our last line belongs to our table, whatever it looks like."""
    grown = with_block("[theirs]\n", BLOCK) + 'approve = "yes"\n'

    with pytest.raises(NotStrict) as refused:
        without_block(grown, BLOCK)

    assert refused.value.line == 7
    assert "belongs to the table" in refused.value.what


def test_what_is_not_there_cannot_be_taken_out() -> None:
    with pytest.raises(ValueError, match="not there"):
        without_block("a = 1\n", BLOCK)
