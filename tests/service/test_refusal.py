"""A start that only a person can mend is seen, and not repeated for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge import assets
from bridge.errors import (
    EXIT_CONFIG,
    BridgeError,
    Refused,
    StorageBroken,
    StorageFull,
    Unavailable,
)
from bridge.paths import Paths
from bridge.service import refusal
from bridge.service.refusal import Supervisor, supervised
from bridge.service.systemd import UNIT
from tests.fakes.clock import FakeClock

DAMAGED = StorageBroken(
    "journal_corrupt", "The journal is damaged.", "Move it away.", exit_code=EXIT_CONFIG
)
ANOTHER = Unavailable("already_running", "A bridge is already running (pid 7).")
NOT_RUNNING = Unavailable("bridge_not_running", "The bridge is not running.")
PERMANENT = pytest.mark.parametrize("error", [DAMAGED, ANOTHER], ids=lambda e: e.code)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path / "c", tmp_path / "s", tmp_path / "c" / "config.json")
    made.prepare()
    return made


def ended(
    paths: Paths, supervisor: Supervisor, error: BridgeError
) -> tuple[int, list[float]]:
    """What the manager sees, and the pauses before."""
    pauses: list[float] = []

    def serve() -> int:
        raise error

    return supervised(paths, supervisor, FakeClock(), serve, pauses.append), pauses


@PERMANENT
def test_what_only_a_person_can_mend_ends_with_78_under_systemd(
    paths: Paths, error: BridgeError
) -> None:
    assert ended(paths, Supervisor.SYSTEMD, error) == (EXIT_CONFIG, [])


@PERMANENT
def test_what_only_a_person_can_mend_ends_with_0_under_launchd(
    paths: Paths, error: BridgeError, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(paths, Supervisor.LAUNCHD, error) == (0, [])
    assert capsys.readouterr().err == f"Error: {error.sentence()}\n"


@pytest.mark.parametrize("supervisor", list(Supervisor))
@PERMANENT
def test_a_refused_start_leaves_its_reason_in_a_private_file(
    paths: Paths, supervisor: Supervisor, error: BridgeError
) -> None:
    ended(paths, supervisor, error)

    assert paths.refused.stat().st_mode & 0o777 == 0o600
    kept = refusal.kept(paths)
    assert kept is not None
    assert (kept.code, kept.message) == (error.code, error.message)
    assert kept.at == FakeClock().wall()


@pytest.mark.parametrize("supervisor", list(Supervisor))
@pytest.mark.parametrize(
    "error",
    [
        Unavailable("journal_busy", "Another program holds the journal."),
        StorageBroken("io", "The disk failed."),
        StorageFull("full", "No room."),
    ],
    ids=lambda e: str(e.code),
)
def test_what_may_pass_is_left_to_the_manager_too_slowly_for_its_limit(
    paths: Paths, supervisor: Supervisor, error: BridgeError
) -> None:
    assert ended(paths, supervisor, error) == (75, [refusal.PAUSE_S])
    assert refusal.kept(paths) is None


def test_a_failed_start_that_may_pass_never_uses_up_the_starts_of_the_unit() -> None:
    unit = (assets.folder("systemd") / UNIT).read_text()
    told = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)

    one_s = refusal.PAUSE_S + float(told["RestartSec"])
    assert one_s * int(told["StartLimitBurst"]) > float(told["StartLimitIntervalSec"])


def test_any_other_failure_keeps_its_exit_code(paths: Paths) -> None:
    odd = Refused("odd", "It is odd.")

    assert ended(paths, Supervisor.SYSTEMD, odd) == (odd.exit_code, [])
    assert refusal.kept(paths) is None


@pytest.mark.parametrize("supervisor", list(Supervisor))
def test_a_bridge_that_was_stopped_leaves_no_reason(
    paths: Paths, supervisor: Supervisor
) -> None:
    assert supervised(paths, supervisor, FakeClock(), lambda: 0) == 0
    assert refusal.kept(paths) is None


def test_a_state_folder_that_cannot_be_used_keeps_no_reason_and_changes_nothing_else(
    paths: Paths,
) -> None:
    paths.refused.symlink_to(paths.state / "elsewhere")

    assert ended(paths, Supervisor.SYSTEMD, DAMAGED) == (EXIT_CONFIG, [])
    assert not (paths.state / "elsewhere").exists()
    assert refusal.kept(paths) is None


@pytest.mark.parametrize("content", [b"", b"{}", b'{"at": 1}', b"\xff" * 20_000])
def test_a_reason_that_makes_no_sense_is_none(paths: Paths, content: bytes) -> None:
    paths.refused.write_bytes(content)
    paths.refused.chmod(0o600)

    assert refusal.kept(paths) is None


def test_a_good_start_takes_the_reason_away(paths: Paths) -> None:
    refusal.keep(paths, DAMAGED, FakeClock())

    refusal.forget(paths)
    refusal.forget(paths)

    assert refusal.kept(paths) is None


def test_why_no_bridge_runs_is_the_reason_of_its_last_start(paths: Paths) -> None:
    refusal.keep(paths, DAMAGED, FakeClock())

    why = refusal.explained(paths, NOT_RUNNING)

    assert why.exit_code == EXIT_CONFIG
    assert "refused. The journal is damaged." in why.message
    assert why.hint == "Move it away. Then: agentworks up"


def test_that_another_bridge_ran_is_no_reason_once_none_runs(paths: Paths) -> None:
    assert refusal.explained(paths, NOT_RUNNING) is NOT_RUNNING
    refusal.keep(paths, ANOTHER, FakeClock())

    assert refusal.explained(paths, NOT_RUNNING) is NOT_RUNNING
