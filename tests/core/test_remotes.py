"""A way that a person named is one plain path, and wishes hold until new ones."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given

from bridge.core.remotes import (
    Pane,
    Remote,
    named,
    pane,
    pane_want,
    parsed,
    wishes,
    without_process,
    without_ways,
)
from tests.core.examples import ANY_TEXT

QUEUE = "unix:///run/user/1000/codex.sock"
FILE = "claude+session:///home/ada/.claude/sessions/42.json"


@pytest.mark.parametrize(
    ("uri", "route", "provider"),
    [
        (FILE, "claude_session", "claude"),
        (QUEUE, "codex_app_server", "codex"),
        ("desktop+unix:///home/ada/.codex/ipc/ipc.sock", "codex_desktop", "codex"),
    ],
)
def test_each_form_names_its_route(uri: str, route: str, provider: str) -> None:
    remote = parsed(uri)

    assert (remote.route, remote.provider, remote.uri) == (route, provider, uri)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/run/codex.sock",
        "http:///run/codex.sock",
        "unix://run/codex.sock",
        "unix:///",
        "unix:///run//codex.sock",
        "unix:///run/../codex.sock",
        "unix:///run/codex.sock/",
        "unix:///run/co\ndex.sock",
        "unix:///run/%2e%2e/codex.sock",
        "unix:///" + "x" * 600,
        "Unix:///run/codex.sock",
    ],
)
def test_what_is_not_plain_names_nothing(uri: str) -> None:
    with pytest.raises(ValueError, match=r"its path|begins with"):
        parsed(uri)


@given(ANY_TEXT)
def test_every_text_is_a_way_or_a_reason(text: str) -> None:
    with suppress(ValueError):
        assert parsed(text).uri == text


def test_an_attach_without_a_wish_keeps_the_former_ones() -> None:
    former = wishes((), ("no_wake", "at_prompt"), QUEUE)

    assert former == ("at_prompt", "no_wake", QUEUE)
    assert wishes(former, None, "") == former
    assert named(former) == Remote("unix", "/run/user/1000/codex.sock")


def test_new_wishes_replace_the_former_ones_and_leave_the_way() -> None:
    assert wishes(("at_prompt", QUEUE), ("mid_turn",), "") == ("mid_turn", QUEUE)
    assert wishes(("at_prompt", QUEUE), None, FILE) == ("at_prompt", FILE)


def test_the_usual_ends_every_wish() -> None:
    assert wishes(("at_prompt", "no_wake", QUEUE), (), "") == ()
    assert named(()) is None


def test_a_file_of_one_process_is_no_wish_for_the_next() -> None:
    assert without_process(("no_wake", FILE)) == ("no_wake",)
    assert without_process(("no_wake", QUEUE)) == ("no_wake", QUEUE)


def test_a_pane_is_a_wish_beside_the_named_way() -> None:
    kept = pane_want("/tmp/tmux-0/default", "%3")
    both = wishes((), None, QUEUE, kept)

    assert pane(both) == Pane("/tmp/tmux-0/default", "%3")
    assert named(both) == parsed(QUEUE)
    assert pane(wishes(both, None, FILE)) == Pane("/tmp/tmux-0/default", "%3")
    moved = wishes(both, None, "", pane_want("/tmp/s", "%4"))
    assert pane(moved) == Pane("/tmp/s", "%4")
    assert named(moved) == parsed(QUEUE)
    assert wishes(both, (), "") == ()


@pytest.mark.parametrize(
    ("socket", "number"),
    [("/tmp/s", "3"), ("/tmp/s", "%"), ("/tmp/s", "%x"), ("s", "%3"), ("", "%3")],
)
def test_a_pane_is_named_by_its_id_at_an_absolute_socket(
    socket: str, number: str
) -> None:
    with pytest.raises(ValueError, match=r"pane|path"):
        pane_want(socket, number)


def test_in_another_providers_chat_no_way_of_this_one_is_wished() -> None:
    pane = pane_want("/tmp/tmux-1000/default", "%3")
    wants = ("no_wake", "claude+session:///a/sessions/1.json", pane, "unix:///run/c")

    assert without_ways(wants) == ("no_wake", pane)


def test_without_a_pane_there_is_none() -> None:
    assert pane(("at_prompt", QUEUE)) is None
    assert pane(("at_prompt", pane_want("/run/tmux.sock", "%3"))) == Pane(
        "/run/tmux.sock", "%3"
    )
