"""`ask` and `pipe` in the state folder: working, current, replaced whole."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from bridge.errors import EXIT_CONFIG, Refused
from bridge.paths import Paths
from bridge.service.programs import install_programs


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(config=tmp_path, state=tmp_path / "s", config_file=tmp_path / "c.json")
    made.prepare()
    return made


def version(paths: Paths) -> str:
    answer = subprocess.run(
        [paths.bin / "ask", "--version"], capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def without_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def with_broken_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_compiler(tmp_path, monkeypatch, "exit 1")


def with_compiler_of_another_computer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It compiles, and what it makes does not run here."""
    put_compiler(tmp_path, monkeypatch, 'printf "\\177ELF" > "$4"')


def put_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    folder = tmp_path / "compiler"
    folder.mkdir()
    program = folder / "cc"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_the_c_twin_is_used_where_a_compiler_is(paths: Paths) -> None:
    install_programs(paths)

    assert version(paths) == "ask AW1 c"


@pytest.mark.parametrize(
    "situation",
    [without_compiler, with_broken_compiler, with_compiler_of_another_computer],
)
def test_the_python_twin_is_used_elsewhere(
    paths: Paths,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    situation: object,
) -> None:
    assert callable(situation)
    situation(tmp_path, monkeypatch)

    install_programs(paths)

    assert version(paths) == "ask AW1 python"
    first_line = (paths.bin / "ask").read_text().splitlines()[0]
    assert first_line.endswith(" -IS")
    assert "venv" not in first_line


def test_what_is_there_is_private_and_nothing_else_is(paths: Paths) -> None:
    install_programs(paths)

    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in paths.bin.iterdir()
    }
    assert modes == {
        "ask": 0o700,
        "pipe": 0o700,
        "tools.json": 0o600,
        "made-from": 0o600,
    }


def test_what_works_is_left_alone(paths: Paths) -> None:
    install_programs(paths)
    before = [(path.name, path.stat().st_ino) for path in sorted(paths.bin.iterdir())]

    install_programs(paths)

    after = [(path.name, path.stat().st_ino) for path in sorted(paths.bin.iterdir())]
    assert after == before


def damage(ask: Path) -> None:
    ask.write_text("#!/nowhere/python3\n")


@pytest.mark.parametrize("harm", [damage, Path.unlink])
def test_what_does_not_run_is_made_anew(paths: Paths, harm: object) -> None:
    install_programs(paths)
    assert callable(harm)
    harm(paths.bin / "ask")

    install_programs(paths)

    assert version(paths).startswith("ask AW1")


def test_programs_of_another_version_are_made_anew(paths: Paths) -> None:
    install_programs(paths)
    (paths.bin / "made-from").write_text("another version\n")
    inode = (paths.bin / "pipe").stat().st_ino

    install_programs(paths)

    assert (paths.bin / "pipe").stat().st_ino != inode


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_runs_no_programs_is_refused(paths: Paths) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "noexec,mode=0700", "none", str(paths.bin)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing may be mounted here")
    try:
        with pytest.raises(Refused) as caught:
            install_programs(paths)
        left = os.listdir(paths.bin)
    finally:
        subprocess.run(["umount", str(paths.bin)], check=True)

    assert caught.value.exit_code == EXIT_CONFIG
    assert "noexec" in caught.value.hint
    assert left == []
