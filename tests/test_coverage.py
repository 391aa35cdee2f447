"""A module is covered by what its own tests run, and by nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = "from pathlib import Path; from tests.coverage import main; exit(main(Path('.')))"

HALF = """
def half(number):
    if number % 2:
        return None
    return number // 2
"""
USER = """
from bridge.core.half import half

FOUR = half(8)
NONE = half(9)
"""
EVEN = """
from bridge.core.half import half

def test_an_even_number():
    assert half(4) == 2
"""
ODD = """
from bridge.core.half import half

def test_an_odd_number():
    assert half(3) is None
"""
USERS = """
from bridge.core import user
from bridge.core.half import half

NINE = half(9)

def test_what_another_module_did():
    assert (user.FOUR, user.NONE, half(9)) == (4, None, NINE)
"""


def measured(folder: Path, **tests: str) -> tuple[int, list[str]]:
    """The exit code, and the lines of the table, for a tree of two modules."""
    for name, content in {
        "bridge/__init__.py": "",
        "bridge/core/__init__.py": "",
        "bridge/core/half.py": HALF,
        "bridge/core/user.py": USER,
        "bridge/store/__init__.py": "",
        "tests/store/test_nothing.py": "def test_nothing():\n    pass\n",
        **{f"tests/core/{name}.py": content for name, content in tests.items()},
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    ended = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    _, _, table = ended.stdout.partition("\n\n")
    return ended.returncode, table.splitlines()


def test_modules_that_their_own_tests_cover_whole_pass(tmp_path: Path) -> None:
    code, table = measured(tmp_path, test_half=EVEN, test_half_odd=ODD, test_user=USERS)

    assert table == [
        "bridge.core.half             100.0 %",
        "bridge.core.user             100.0 %",
        "2 modules, 0 not covered whole by their own tests",
    ]
    assert code == 0


def test_what_other_modules_and_their_tests_run_is_no_cover(tmp_path: Path) -> None:
    """Neither when they are imported nor when they run."""
    code, table = measured(tmp_path, test_half=EVEN, test_user=USERS)

    assert table[0] == "bridge.core.half              66.7 %  lines 4; branches from 3"
    assert code == 1


def test_a_module_without_a_test_file_of_its_own_fails(tmp_path: Path) -> None:
    code, table = measured(tmp_path, test_half=EVEN + ODD)

    assert table[1] == "bridge.core.user             100.0 %  no test file of its own"
    assert code == 1


def test_a_test_that_fails_fails_the_whole(tmp_path: Path) -> None:
    wrong = EVEN.replace("== 2", "== 3")
    code, table = measured(tmp_path, test_half=wrong + ODD, test_user=USERS)

    assert table[-1].startswith("2 modules, 0 not")
    assert code == 1
