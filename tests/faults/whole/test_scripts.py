"""What a failure leaves: a script of events that can be kept as a test."""

from __future__ import annotations

import pytest

from tests.faults import kept_scripts
from tests.faults.whole import events as happens
from tests.faults.whole.host import Codex
from tests.faults.whole.playing import play


def test_a_failure_is_printed_as_a_script_that_can_be_kept() -> None:
    for script in kept_scripts.SYSTEM.values():
        printed = happens.written(script)

        (again,) = eval(f"{{{printed}}}", vars(happens)).values()
        assert again == tuple(script)


def test_a_broken_promise_carries_its_script(codex: Codex) -> None:
    script = [happens.Post(), happens.Event()]  # nothing does a bare event

    with pytest.raises(TypeError) as caught:
        play(script, codex)

    assert caught.value.__notes__[0].endswith(happens.written(script))
