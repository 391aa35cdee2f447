"""The wake test at a terminal: asked first, step by step, and what an end means."""

from __future__ import annotations

import pytest

from bridge.cli.waking import STEPS
from tests.cli.conftest import FakeDaemon, Run, typed

NOTES = ("", "", "at once, by the chat's own inbox", "", "processed")


def reply(count: int, is_over: bool = False) -> dict[str, object]:
    steps = [{"passed_s": n * 0.25, "note": NOTES[n]} for n in range(count)]
    return {"name": "bob", "steps": steps, "is_over": is_over}


@pytest.fixture
def trial(daemon: FakeDaemon) -> FakeDaemon:
    daemon.replies["test_wake"] = reply(2)
    daemon.replies["wake_progress"] = reply(5, is_over=True)
    return daemon


def test_each_step_is_shown_with_its_time(run: Run, trial: FakeDaemon) -> None:
    ran = run("agents", "--test-wake", "bob", "--yes")

    assert ran.exit_code == 0, ran.err
    assert "costs tokens" in ran.err
    lines = ran.out.splitlines()
    for line, step in zip(lines[:-1], STEPS, strict=True):
        assert line.startswith(f"  {step}")
    assert "0.50 s  at once, by the chat's own inbox" in ran.out
    assert lines[-1] == "bob can be reached."
    assert [request["verb"] for request in trial.asked] == [
        "test_wake",
        "wake_progress",
    ]
    assert trial.asked[-1]["known"] == 2


@pytest.mark.parametrize(
    ("count", "what"),
    [
        (1, "the server has it"),
        (2, "nothing wakes this chat"),
        (3, "its program gave no sign"),
        (4, "its agent has not said so"),
    ],
)
def test_the_first_step_that_does_not_come_ends_it_with_what_that_means(
    run: Run, trial: FakeDaemon, count: int, what: str
) -> None:
    trial.replies["wake_progress"] = reply(count, is_over=True)

    ran = run("agents", "--test-wake", "bob", "--yes")

    assert ran.exit_code == 1
    assert f"Not {STEPS[count]} within a minute" in ran.err
    assert what in ran.err.lower()


def test_nothing_is_sent_without_a_yes(
    run: Run, trial: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = run("agents", "--test-wake", "bob")
    with typed(monkeypatch, "n\n"):
        declined = run("agents", "--test-wake", "bob")

    assert nobody.exit_code == 2
    assert "--yes" in nobody.err
    assert declined.exit_code == 1
    assert trial.asked == []


def test_a_name_is_needed(run: Run, trial: FakeDaemon) -> None:
    ran = run("agents", "--test-wake", "--yes")

    assert ran.exit_code == 2
    assert "agents NAME --test-wake" in ran.err
    assert trial.asked == []


def test_an_agent_is_refused(run: Run, trial: FakeDaemon) -> None:
    trial.refuse("test_wake", "person_only", 3)

    assert run("agents", "--test-wake", "bob", "--yes").exit_code == 3


def test_in_json_it_is_one_document(run: Run, trial: FakeDaemon) -> None:
    document = run("agents", "--test-wake", "bob", "--yes", "--json").document()

    assert document["is_reached"] is True
    assert [step["step"] for step in document["steps"]] == list(STEPS)
