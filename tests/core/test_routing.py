"""Which way an offer goes now: every combination."""

from __future__ import annotations

import itertools

import pytest

from bridge.core.routing import HOOK, Choice, choose

NATIVE = "codex_app_server"
BOTH = (NATIVE, HOOK)


def test_the_providers_order_decides_between_open_routes() -> None:
    assert choose(BOTH, {HOOK, NATIVE}, False, False, False) == Choice(NATIVE)
    assert choose((HOOK, NATIVE), {HOOK, NATIVE}, False, False, False) == Choice(HOOK)


def test_what_a_native_route_refused_goes_only_by_hook() -> None:
    assert choose(BOTH, {HOOK, NATIVE}, True, False, False) == Choice(HOOK)
    assert choose(BOTH, {NATIVE}, True, False, False) == Choice(None)


def test_a_route_that_the_provider_does_not_have_is_not_taken() -> None:
    assert choose((HOOK,), {NATIVE}, False, False, False) == Choice(None)


def test_the_person_is_told_once_and_only_when_nothing_will_ask_by_itself() -> None:
    assert choose(BOTH, (), False, True, False) == Choice(None, tells_person=True)
    assert choose(BOTH, (), False, True, True) == Choice(None)
    assert choose(BOTH, (), False, False, False) == Choice(None)


@pytest.mark.parametrize("open_now", [(), (HOOK,), (NATIVE,), BOTH])
def test_it_is_total_and_never_takes_a_closed_route(open_now: tuple[str, ...]) -> None:
    for order in ((), (HOOK,), (NATIVE,), BOTH):
        for closed, idle, told in itertools.product([False, True], repeat=3):
            choice = choose(order, open_now, closed, idle, told)

            if choice.route is None:
                assert choice.tells_person == (idle and not told)
            else:
                assert choice.route in order
                assert choice.route in open_now
                assert not (closed and choice.route == NATIVE)
                assert not choice.tells_person
