"""The whole bridge, in any order of whatever can happen to bob's mail.

A real daemon's inside on a real journal, a server and a host that do as they
are told, and virtual time. After each event the promises P1, P2, P3 and P5 are
looked at; at the end everything was shown, named, read or acknowledged.

MACHINES_EXAMPLES=1000 plays that many random scripts instead of the usual ones.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import kept_scripts
from tests.faults.whole import events as happens
from tests.faults.whole.answers import FAULTS
from tests.faults.whole.choosing import examples, scripts
from tests.faults.whole.host import Codex
from tests.faults.whole.playing import play

MESSAGES = st.integers(0, 5)
SESSIONS = st.sampled_from([0, 0, 0, 1])
SECONDS = st.sampled_from([0.1, 0.5, 1.0, 3.0, 7.0, 11.0, 26.0, 31.0, 61.0, 601.0])
POST = st.builds(happens.Post, is_large=st.sampled_from([False, False, False, True]))
TURN_END = st.builds(happens.TurnEnd, SESSIONS, st.sampled_from([False, False, True]))
SAY = st.builds(
    happens.Say, st.sampled_from(["printed", "printed", "unprinted", ""]), st.booleans()
)
WAY_SAYS = st.builds(
    happens.WaySays,
    st.sampled_from(["printed", "printed", "unprinted", ""]),
    st.booleans(),
)
AGAIN = st.builds(happens.Again, MESSAGES, st.booleans())
FAULT = st.builds(happens.Fault, st.sampled_from(FAULTS), st.integers(1, 4))
ATTACH = st.builds(happens.Attach, st.integers(0, 1))
EVENTS = st.one_of(
    POST,
    TURN_END,
    SAY,
    st.builds(happens.Ack, MESSAGES, st.sampled_from(["admitted", "processed"])),
    st.builds(happens.Pass, SECONDS),
    st.builds(happens.Retract, MESSAGES),
    st.just(happens.Crash()),
    st.builds(happens.CrashAtCommit, st.integers(1, 6)),
    st.just(happens.Cut()),
    AGAIN,
    st.builds(happens.Attach, SESSIONS),
    st.one_of(
        st.just(happens.Swap()),
        st.just(happens.Cut(is_half=True)),
        st.just(happens.Silence()),
        st.builds(happens.Rewind, st.integers(1, 2)),
        FAULT,
        st.builds(happens.Replace, st.booleans()),
        st.just(happens.Detach()),
        st.builds(happens.SessionEnd, SESSIONS),
        st.builds(happens.Prompt, SESSIONS),
        st.just(happens.Read()),
    ),
    st.one_of(
        st.just(happens.WayFound()),
        WAY_SAYS,
        st.just(happens.WayGone()),
    ),
    st.one_of(
        st.just(happens.Restart()),
        st.builds(happens.Away, st.sampled_from([1, 8])),
        st.builds(happens.SlowDisk, st.sampled_from([0.0, 0.2, 1.0, 2.5, 4.0])),
        st.builds(happens.FullDisk, st.integers(1, 3)),
        st.builds(happens.Luck, st.integers(0, 9)),
        st.just(happens.ServerRestart()),
    ),
)


SHOWN = st.just(happens.TurnEnd())
SCRIPTS = scripts(
    EVENTS,
    (POST, TURN_END),
    (POST, TURN_END, SAY),
    (TURN_END, SAY),
    (POST, TURN_END, FAULT, SAY, ATTACH),
    (st.just(happens.WayFound()), POST, WAY_SAYS),
    (st.just(happens.WayFound()), POST, WAY_SAYS, TURN_END, SAY),
    # Shown, not told to the server, and brought again: to the next chat, or to the
    # same one after so long that its row is gone.
    (POST, SHOWN, st.just(happens.Fault()), st.just(happens.Say()), ATTACH),
    (POST, SHOWN, st.just(happens.Say()), st.just(happens.Away(8)), AGAIN),
)


@examples(usual=60)
@given(script=SCRIPTS)
def test_no_order_of_events_breaks_a_promise(
    script: list[happens.Event], codex: Codex
) -> None:
    play(script, codex)


@pytest.mark.parametrize("what", kept_scripts.SYSTEM)
def test_a_kept_script_breaks_no_promise(what: str, codex: Codex) -> None:
    play(kept_scripts.SYSTEM[what], codex)
