"""Puts `ask` and `pipe` where the hosts' hooks and settings expect them.

Owns `<state>/bin`. Promises that each program ran once before it was put there;
that the C twin of `ask` is used where a C compiler is and works, the Python twin
elsewhere; that a program is replaced by rename, so that a host never starts half
of one; and that the hosts' lines, which name these places, never change.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from bridge import assets
from bridge.errors import EXIT_CONFIG, Refused
from bridge.paths import (
    Paths,
    make_private_folder,
    read_private_file,
    write_private_file,
)

_COMPILE_S = 60.0
_RUN_S = 5.0
_PROGRAM_MODE = 0o700
_PROGRAM_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Systems cut a longer first line, and split it at its first space.
_FIRST_LINE_LIMIT = 127
_COMPILERS = ("cc", "gcc", "clang")
# A static program starts in half the time; not every system can make one.
_COMPILER_FLAGS = (("-static",), ())
_TOOLS = "tools.json"
_STAMP = "made-from"
_STAMP_LIMIT = 200  # bytes


class Program(Struct, frozen=True):
    """One program: how it is tried, and the first bytes that it then prints."""

    name: str
    trial: tuple[str, ...]
    says: bytes


ASK = Program("ask", ("--version",), b"ask AW1")
PIPE = Program("pipe", (), b"usage: pipe")
Make = Callable[[Program, Path], bool]


def install_programs(paths: Paths) -> None:
    """Have both programs in place, made from this version's sources.

    Beside them lies the list of tools that `pipe` shows while no bridge runs. What
    is there, up to date and runs is left alone. Raises Refused (exit 78) when no
    program can run there.
    """
    make_private_folder(paths.bin)
    made_from = _made_from()
    is_current = read_private_file(paths.bin / _STAMP, _STAMP_LIMIT) == made_from
    if is_current and all(_runs(each, paths.bin / each.name) for each in (ASK, PIPE)):
        return
    compiled = [partial(_compile, flags=flags) for flags in _COMPILER_FLAGS]
    _put(ASK, paths.bin, (*compiled, _copy))
    _put(PIPE, paths.bin, (_copy,))
    tools = (assets.folder("hooks") / _TOOLS).read_bytes()
    write_private_file(paths.bin / _TOOLS, tools)
    write_private_file(paths.bin / _STAMP, made_from)


def _made_from() -> bytes:
    """All that the programs depend on, as one line."""
    digest = hashlib.sha256(os.fsencode(_interpreter()))
    digest.update(os.fsencode(_compiler() or ""))
    for name in ("ask.c", "ask.py", "pipe.py", _TOOLS):
        digest.update((assets.folder("hooks") / name).read_bytes())
    return f"{digest.hexdigest()}\n".encode()


def _put(program: Program, folder: Path, ways: Sequence[Make]) -> None:
    fresh = folder / f".{program.name}.{os.getpid()}.new"
    for make in ways:
        with suppress(FileNotFoundError):  # of a process that died, or did not run
            fresh.unlink()
        if make(program, fresh) and _runs(program, fresh):
            os.rename(fresh, folder / program.name)
            return
    with suppress(FileNotFoundError):
        fresh.unlink()
    raise Refused(
        "no_program_runs",
        f"No program could be put into {folder} that runs there, so no chat could"
        " reach the bridge.",
        "See whether it is on a disk that runs no programs (noexec), or set"
        " AGENTWORKS_STATE to another folder.",
        exit_code=EXIT_CONFIG,
    )


def _compiler() -> str | None:
    return next(filter(None, map(shutil.which, _COMPILERS)), None)


def _compile(program: Program, target: Path, flags: Sequence[str]) -> bool:
    """The C twin; False where no compiler is or it does not work."""
    compiler = _compiler()
    if compiler is None:
        return False
    source = assets.folder("hooks") / f"{program.name}.c"
    command = [compiler, "-std=c99", "-O2", "-o", str(target), str(source), *flags]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMPILE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if done.returncode == 0:
        target.chmod(_PROGRAM_MODE)
    return done.returncode == 0


def _copy(program: Program, target: Path) -> bool:
    """The Python twin, with our interpreter in its first line."""
    source = assets.folder("hooks") / f"{program.name}.py"
    _, _, rest = source.read_bytes().partition(b"\n")
    with os.fdopen(os.open(target, _PROGRAM_FLAGS, _PROGRAM_MODE), "wb") as file:
        file.write(b"#!%b -IS\n%b" % (os.fsencode(_interpreter()), rest))
        file.flush()
        os.fsync(file.fileno())
    return True


def _interpreter() -> Path:
    """Python itself, never a version manager's shim or a virtual environment."""
    own = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    first_line = os.fsencode(f"#!{own} -IS\n")
    if b" " in os.fsencode(own) or len(first_line) > _FIRST_LINE_LIMIT:
        return Path("/usr/bin/python3")
    return own


def _runs(program: Program, place: Path) -> bool:
    try:
        done = subprocess.run(
            [str(place), *program.trial],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_RUN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.startswith(program.says)
