"""Processes as psutil shows them, where there is no /proc (macOS).

Promises the same answers as process_linux; `start` is in microseconds since
1970, as the kernel noted it once, and only ever compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache

import psutil

from bridge.core.caller import ProcessFacts

_ARGUMENTS_LIMIT = 16 * 1024  # characters


@cache
def boot_id() -> str:
    """The boot's time: macOS gives no id."""
    return f"boot-{int(psutil.boot_time())}"


def read_facts(pid: int) -> ProcessFacts | None:
    """See process_linux.read_facts."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return None
            return ProcessFacts(
                pid=pid,
                parent_pid=process.ppid(),
                start=_microseconds(process),
                name=process.name(),
                uid=process.uids().effective,
                program=_program(process),
                arguments=_arguments(process),
            )
    except psutil.Error:
        return None


def read_start(pid: int) -> int | None:
    """See process_linux.read_start."""
    facts = read_facts(pid)
    return None if facts is None else facts.start


def read_variables(pid: int, names: AbstractSet[str]) -> Mapping[str, str] | None:
    """See process_linux.read_variables."""
    try:
        environment = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return None
    return {name: value for name, value in environment.items() if name in names}


def _microseconds(process: psutil.Process) -> int:
    return round(process.create_time() * 1_000_000)


def _program(process: psutil.Process) -> str:
    try:
        return process.exe()
    except psutil.Error:
        return ""


def _arguments(process: psutil.Process) -> tuple[str, ...]:
    try:
        arguments = process.cmdline()
    except psutil.Error:
        return ()
    return tuple("\0".join(arguments)[:_ARGUMENTS_LIMIT].split("\0"))
