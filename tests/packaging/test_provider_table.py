"""The README's table is the code's own word, between two marks and nowhere else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.core.routing import HOOK
from bridge.providers.known import PROVIDERS

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "packaging/scripts/provider-table.py"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The script, and the code and README that it reads."""
    (tmp_path / SCRIPT).parent.mkdir(parents=True)
    shutil.copy(ROOT / SCRIPT, tmp_path / SCRIPT)
    shutil.copy(ROOT / "README.md", tmp_path)
    (tmp_path / "bridge").symlink_to(ROOT / "bridge")
    return tmp_path


def run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(checkout / SCRIPT), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_each_program_has_a_row_and_each_of_its_ways_its_words() -> None:
    done = run(ROOT)
    rows = done.stdout.splitlines()[2:]

    assert done.returncode == 0, done.stderr
    assert len(rows) == len(PROVIDERS)
    for provider, row in zip(PROVIDERS.values(), rows, strict=True):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 6
        assert (cells[0], cells[-1]) == (provider.TITLE, provider.TRIED)
        assert all(cells)
        is_woken = any(route != HOOK for route in provider.ROUTES)
        assert is_woken or cells[3] == "—"


def test_what_was_written_is_agreed_to_and_touches_nothing_else(
    checkout: Path,
) -> None:
    readme = checkout / "README.md"
    before = readme.read_text()
    assert run(checkout, "--write").returncode == 0
    written = readme.read_text()
    lost = [line for line in before.splitlines() if line not in written.splitlines()]

    assert [line for line in lost if not line.startswith("|")] == []
    assert run(checkout, "--check").returncode == 0
    assert run(checkout, "--write").returncode == 0
    assert readme.read_text() == written


def test_a_table_that_drifted_is_named_with_its_lines(checkout: Path) -> None:
    readme = checkout / "README.md"
    run(checkout, "--write")
    row = f"| {PROVIDERS['claude'].TITLE} |"
    readme.write_text(readme.read_text().replace(row, "| Somebody Else |"))

    checked = run(checkout, "--check")

    assert checked.returncode == 1
    assert "-| Somebody Else |" in checked.stderr
    assert f"+{row}" in checked.stderr


def test_without_its_marks_nothing_is_written(checkout: Path) -> None:
    readme = checkout / "README.md"
    readme.write_text(readme.read_text().replace("programs: end", "programs"))
    before = readme.read_text()

    assert run(checkout, "--write").returncode == 1
    assert readme.read_text() == before
