"""Presence: who has a stream, and who counts as live."""

from __future__ import annotations

from bridge.server.presence import Presence
from tests.fakes.clock import FakeClock

GRACE_S = 600.0


def test_an_open_stream_is_connected_and_live() -> None:
    clock = FakeClock()
    presence = Presence(clock, GRACE_S)

    presence.arrive("att-1", "stream")
    clock.advance(10 * GRACE_S)

    assert presence.is_connected("att-1")
    assert presence.is_live("att-1")
    assert presence.count() == 1


def test_the_grace_runs_from_the_streams_end() -> None:
    clock = FakeClock()
    presence = Presence(clock, GRACE_S)
    presence.arrive("att-1", "stream")
    clock.advance(10 * GRACE_S)
    presence.leave("att-1", "stream")

    clock.advance(GRACE_S - 1)
    assert presence.is_live("att-1")
    clock.advance(1)

    assert not presence.is_live("att-1")
    assert not presence.is_connected("att-1")


def test_an_older_stream_that_leaves_does_not_disconnect_the_newer() -> None:
    presence = Presence(FakeClock(), GRACE_S)
    assert presence.arrive("att-1", "older") is None
    assert presence.arrive("att-1", "newer") == "older"

    assert presence.leave("att-1", "older") is False
    assert presence.is_connected("att-1")
    assert presence.leave("att-1", "newer") is True
    assert presence.count() == 0


def test_a_restart_takes_nobodys_name_away() -> None:
    clock = FakeClock()
    presence = Presence(clock, GRACE_S)
    clock.advance(GRACE_S - 1)

    assert presence.is_live("att-of-the-last-run")
    clock.advance(1)
    assert not presence.is_live("att-of-the-last-run")


def test_a_wall_clock_that_jumps_makes_nobody_offline() -> None:
    clock = FakeClock()
    presence = Presence(clock, GRACE_S)
    presence.see("att-1")

    clock.wall_s += 10 * 365 * 86_400.0

    assert presence.is_live("att-1")


def test_nothing_is_connected_without_a_lease() -> None:
    assert not Presence(FakeClock(), GRACE_S).is_connected(None)
