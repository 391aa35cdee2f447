"""What the bridge said last, shown so that no text of it drives the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bridge.cli.logs import _of_command
from bridge.errors import Unavailable
from bridge.paths import Paths
from tests.cli.conftest import Run


def test_the_last_lines_are_shown_with_control_characters_made_visible(
    run: Run, paths: Paths
) -> None:
    (paths.log / "bridge.log").write_text("old\n\x1b[2Jwiped\x07\nlast \u202eline\n")

    ran = run("bridge", "logs", "--lines", "2")

    assert ran.exit_code == 0
    assert "old" not in ran.out
    assert ran.out.splitlines()[0].endswith("wiped\\u{7}")
    assert not {"\x1b", "\x07", "\u202e"} & set(ran.out)


def test_a_log_is_one_document_for_a_program(run: Run, paths: Paths) -> None:
    (paths.log / "bridge.log").write_text("a\nb\n")

    assert run("bridge", "logs", "--json").document() == {
        "source": str(paths.log / "bridge.log"),
        "lines": ["a", "b"],
    }


def test_no_log_is_said_so(run: Run, paths: Paths) -> None:
    ran = run("bridge", "logs")

    assert ran.exit_code == 75
    assert "there is no" in ran.err


def test_a_followed_log_shows_what_comes_and_a_new_file(
    home: Path, paths: Paths
) -> None:
    log = paths.log / "bridge.log"
    log.write_text("first\n")
    command = [sys.executable, "-P", "-u", "-m", "bridge", "bridge", "logs", "--follow"]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        command,
        env={"HOME": str(home), "PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "first\n"
        with log.open("a") as file:
            file.write("second\n")
        assert following.stdout.readline() == "second\n"
        log.replace(log.with_name("bridge.log.1"))
        log.write_text("third\n")
        assert following.stdout.readline() == "third\n"
        following.kill()


# ---- the journal of systemd --------------------------------------------------------


def test_the_lines_of_another_program_are_passed_on() -> None:
    assert list(_of_command(["printf", "a\\nb\\n"])) == ["a", "b"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'No journal files were found.' >&2", "No journal files were found"),
        ("echo one; echo 'No such unit.' >&2; exit 1", "No such unit"),
        ("exit 1", "it was not readable"),
    ],
)
def test_what_keeps_the_journal_from_being_read_is_said(script: str, why: str) -> None:
    with pytest.raises(Unavailable, match=why):
        list(_of_command(["sh", "-c", script]))


def test_a_computer_without_journalctl_says_so() -> None:
    with pytest.raises(Unavailable, match="is not there"):
        list(_of_command(["/nonexistent/journalctl"]))


def test_a_journal_that_is_followed_no_more_leaves_no_program() -> None:
    lines = _of_command(["sh", "-c", "echo one; exec sleep 600"])

    assert next(lines) == "one"
    lines.close()
