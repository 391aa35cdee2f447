"""Both twins of the hook client, installed as they are on a person's computer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "hooks"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2")
# The interpreter itself, never a version manager's shim or a virtual environment.
INTERPRETER = Path(getattr(sys, "_base_executable", sys.executable)).resolve()

Install = Callable[[Path], Path]


def with_first_line(source: Path, target: Path) -> None:
    """Copy a hook program and put this interpreter into its first line."""
    _, _, rest = source.read_text().partition("\n")
    target.write_text(f"#!{INTERPRETER} -IS\n{rest}")
    target.chmod(0o700)


def compile_ask(folder: Path, *flags: str) -> Path | None:
    """The C twin, None where no compiler is or these flags are not for it."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    target = folder / "ask"
    command = [compiler, *STRICT, *flags, "-o", str(target), str(HOOKS / "ask.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert flags or done.returncode == 0, done.stderr
    return target if done.returncode == 0 else None


@pytest.fixture(scope="session", params=["c", "python"])
def twin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """One twin as a program."""
    folder = tmp_path_factory.mktemp(f"ask-{request.param}")
    if request.param == "c":
        compiled = compile_ask(folder)
        if compiled is None:
            pytest.skip("there is no C compiler here")
        return compiled
    with_first_line(HOOKS / "ask.py", folder / "ask")
    return folder / "ask"


@pytest.fixture
def install(twin: Path) -> Install:
    """Puts the twin at `<state>/bin/ask`."""

    def put(state: Path) -> Path:
        place = state / "bin" / "ask"
        place.parent.mkdir(mode=0o700, parents=True)
        # Linked, not copied: a file that was just written may be busy.
        place.hardlink_to(twin)
        return place

    return put


@pytest.fixture
def pipe(state: Path) -> Path:
    """The MCP child at `<state>/bin/pipe`."""
    place = state / "bin" / "pipe"
    place.parent.mkdir(mode=0o700, parents=True)
    with_first_line(HOOKS / "pipe.py", place)
    return place


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder without a daemon."""
    return tmp_path / "state"


@pytest.fixture
def ask(install: Install, state: Path) -> Path:
    """The installed hook client."""
    return install(state)
