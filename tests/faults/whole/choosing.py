"""How many scripts a machine plays, and which: the usual ones, or any."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.faults.whole.events import Event


def examples(usual: int) -> Callable[[Any], Any]:
    """The same `usual` scripts each time; MACHINES_EXAMPLES random ones if set."""
    wanted = os.environ.get("MACHINES_EXAMPLES", "")
    return settings(
        max_examples=int(wanted or usual),
        derandomize=not wanted,
        suppress_health_check=[HealthCheck.too_slow],
    )


def scripts(
    events: st.SearchStrategy[Event], *phrases: Sequence[st.SearchStrategy[Event]]
) -> st.SearchStrategy[list[Event]]:
    """Any list of these events, some 20 long; one that fails shrinks to its least.

    `phrases` are events that often follow each other, so that what takes several
    steps is met soon.
    """
    parts = st.one_of(
        st.lists(events, max_size=4), *(st.tuples(*phrase) for phrase in phrases)
    )
    return st.lists(parts, max_size=20).map(_joined)


def _joined(parts: Sequence[Sequence[Event]]) -> list[Event]:
    return [event for part in parts for event in part]
