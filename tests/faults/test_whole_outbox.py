"""The whole bridge, in any order of whatever can happen to what bob sends.

The same daemon, server and host as in test_whole_system.py. After each event the
server has every submission at most once, with its content, in the order of its
conversation, and was not asked before its time (P4); at the end what an agent
was told is kept is there, or its refusal was told.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import kept_scripts
from tests.faults.whole import events as happens
from tests.faults.whole.answers import FAULTS, SEND_FAULTS
from tests.faults.whole.choosing import examples, scripts
from tests.faults.whole.host import Codex
from tests.faults.whole.playing import play

SECONDS = st.sampled_from([0.1, 1.0, 3.0, 6.0, 8.0, 13.0, 31.0, 61.0])
SEND = st.builds(
    happens.Send,
    st.integers(0, 6),
    st.integers(0, 1),
    st.sampled_from([0, 0, 0, 0, 1]),
)
FAULT = st.builds(happens.SendFault, st.sampled_from(SEND_FAULTS))
AWAY = st.builds(happens.Fault, st.sampled_from(FAULTS), st.integers(1, 4))
CUT, CRASH = st.just(happens.Cut()), st.just(happens.Crash())
EVENTS = st.one_of(
    SEND,
    FAULT,
    st.builds(happens.SendFault, st.sampled_from(["lost", "slow"])),
    st.builds(happens.Pass, SECONDS),
    CRASH,
    st.builds(happens.CrashAtCommit, st.integers(1, 6)),
    AWAY,
    st.one_of(
        CUT,
        st.just(happens.ServerRestart()),
        st.just(happens.Restart()),
        st.builds(happens.Away, st.just(1)),
        st.builds(happens.SlowDisk, st.sampled_from([0.0, 0.2, 1.0, 4.0, 6.0])),
        st.builds(happens.FullDisk, st.integers(1, 3)),
        st.builds(happens.Luck, st.integers(0, 9)),
        st.builds(happens.Replace),
        st.builds(happens.Attach, st.integers(0, 1)),
        st.just(happens.Detach()),
        st.just(happens.TurnEnd()),
        st.builds(happens.Say, st.sampled_from(["printed", "unprinted", ""])),
    ),
)


SCRIPTS = scripts(EVENTS, (FAULT, SEND), (SEND, SEND), (AWAY, CUT, SEND, SEND, CRASH))


@examples(usual=60)
@given(script=SCRIPTS)
def test_no_order_of_events_loses_or_repeats_what_is_sent(
    script: list[happens.Event], codex: Codex
) -> None:
    play(script, codex)


@pytest.mark.parametrize("what", kept_scripts.OUTBOX)
def test_a_kept_script_loses_and_repeats_nothing(what: str, codex: Codex) -> None:
    play(kept_scripts.OUTBOX[what], codex)
