"""Set-up says in one sentence what is missing, and changes nothing then."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

OLD = """#!/bin/sh
case "$*" in
    --version) echo "Python 3.9.2" ;;
    *version_info*) exit 1 ;;
    *) exit 9 ;;
esac
"""
# A Python as plain Debian ships it: no ensurepip, no pip, no virtualenv.
BARE = """#!/bin/sh
case "$*" in
    --version) echo "Python 3.11.2" ;;
    *version_info*) exit 0 ;;
    "-m venv"*) mkdir -p .venv/bin; exit 1 ;;
    *) exit 1 ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of a checkout as set-up reads before it installs anything."""
    scripts = tmp_path / "checkout" / "packaging" / "scripts"
    scripts.mkdir(parents=True)
    shutil.copy(ROOT / "packaging" / "scripts" / "setup.sh", scripts)
    return tmp_path / "checkout"


def set_up(checkout: Path, python: str | None) -> subprocess.CompletedProcess[str]:
    """Run it with only this python3 on PATH, beside the ordinary small programs."""
    programs = checkout.parent / "programs"
    programs.mkdir()
    for name in ("dirname", "mkdir", "rm", "sh", "touch"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    if python is not None:
        script = programs / "python3"
        script.write_text(python)
        script.chmod(0o755)
    return subprocess.run(
        ["/bin/sh", str(checkout / "packaging" / "scripts" / "setup.sh")],
        env={"PATH": str(programs), "HOME": os.fspath(checkout.parent)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_missing_python_is_said(checkout: Path) -> None:
    done = set_up(checkout, None)

    assert done.returncode == 1
    assert "needs Python 3.11 or newer and found no python3" in done.stderr
    assert "apt-get install python3" in done.stderr


def test_an_old_python_is_said_with_its_version(checkout: Path) -> None:
    done = set_up(checkout, OLD)

    assert done.returncode == 1
    assert "needs Python 3.11 or newer and found Python 3.9.2" in done.stderr


def test_a_python_that_makes_no_environment_names_the_package(checkout: Path) -> None:
    done = set_up(checkout, BARE)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()
