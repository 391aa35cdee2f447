"""What every host's words are read by: a session's name in a program's variable."""

from __future__ import annotations

from functools import partial

import pytest

from bridge.errors import Refused
from bridge.providers import host_json


def test_a_programs_own_variable_names_its_session_or_none() -> None:
    named = partial(host_json.session_named, variable="PI_SESSION_ID", title="Pi")

    assert named({"PI_SESSION_ID": "01-a.b"}) == "01-a.b"
    assert named({}) is None
    assert named({"PI_SESSION_ID": ""}) is None


@pytest.mark.parametrize("nonsense", [" ", "two words", "a\nb", "-x", "x" * 129])
def test_a_variable_that_names_no_session_is_refused_unquoted(nonsense: str) -> None:
    with pytest.raises(Refused) as refused:
        host_json.session_named({"ONE": nonsense}, "ONE", "Pi")

    assert refused.value.code == "session_unclear"
    assert nonsense not in refused.value.message or not nonsense.strip()
