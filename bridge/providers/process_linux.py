"""Processes as Linux shows them, read from /proc and nothing else.

Promises that all facts of one answer are of one process: its folder is opened
once, and what is read through it fails when the process is gone, whoever has its
pid by then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache

from bridge.core.caller import ProcessFacts

_ARGUMENTS_LIMIT = 16 * 1024  # bytes; longer command lines are cut
_ENVIRONMENT_LIMIT = 1024 * 1024  # bytes; a larger one is not readable to us
_FOLDER_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_DELETED = " (deleted)"  # what the kernel adds to a program that was replaced
_DEAD = b"ZX"
_SMALL = 16 * 1024  # bytes


@cache
def boot_id() -> str:
    """This boot's id, another one after every start of the computer."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def read_facts(pid: int) -> ProcessFacts | None:
    """The facts of a process, or None when there is none (a zombie is none)."""
    try:
        folder = os.open(f"/proc/{pid}", _FOLDER_FLAGS)
    except OSError:
        return None
    try:
        return _facts_in(pid, folder)
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(folder)


def read_start(pid: int) -> int | None:
    """When a living process started, in ticks since boot; None for no process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            state, _, start, _ = _parse_stat(file.read(4096))
    except (OSError, ValueError, IndexError):
        return None
    return None if state in _DEAD else start


def read_variables(pid: int, names: AbstractSet[str]) -> Mapping[str, str] | None:
    """Those variables of the environment a process was started with.

    None when it cannot be read whole: another user's, one that hides, or more
    than 1 MiB.
    """
    try:
        folder = os.open(f"/proc/{pid}", _FOLDER_FLAGS)
    except OSError:
        return None
    try:
        text = _read(folder, "environ", _ENVIRONMENT_LIMIT + 1)
    except OSError:
        return None
    finally:
        os.close(folder)
    if len(text) > _ENVIRONMENT_LIMIT:
        return None
    return _chosen(text, names)


def _facts_in(pid: int, folder: int) -> ProcessFacts | None:
    state, parent_pid, start, name = _parse_stat(_read(folder, "stat", 4096))
    if state in _DEAD:
        return None
    return ProcessFacts(
        pid=pid,
        parent_pid=parent_pid,
        start=start,
        name=name,
        uid=os.fstat(folder).st_uid,  # the effective one, whatever the process hides
        program=_program(folder),
        arguments=_parse_arguments(_read(folder, "cmdline", _ARGUMENTS_LIMIT)),
    )


def _parse_stat(text: bytes) -> tuple[bytes, int, int, str]:
    """State, parent's pid, start and name; the name may hold anything but NUL."""
    opening = text.index(b"(")
    closing = text.rindex(b")")
    fields = text[closing + 2 :].split(b" ", 20)
    name = text[opening + 1 : closing].decode("utf-8", "replace")
    return fields[0], int(fields[1]), int(fields[19]), name


def _parse_arguments(text: bytes) -> tuple[str, ...]:
    if not text:
        return ()  # a kernel thread, or a process on its way out
    return tuple(text.removesuffix(b"\0").decode("utf-8", "replace").split("\0"))


def _program(folder: int) -> str:
    try:
        return os.readlink("exe", dir_fd=folder).removesuffix(_DELETED)
    except OSError:
        return ""  # another user's


def _chosen(text: bytes, names: AbstractSet[str]) -> Mapping[str, str]:
    """The first value of each name, as getenv would give it."""
    chosen: dict[str, str] = {}
    for entry in text.decode("utf-8", "replace").split("\0"):
        name, equals, value = entry.partition("=")
        if equals and name in names:
            chosen.setdefault(name, value)
    return chosen


def _read(folder: int, name: str, limit_bytes: int) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        # One read is all: the kernel fills the buffer or has no more to give. Most
        # fit the small one, which costs a fifth of a large one
        # (test_a_large_environment_is_read_whole).
        text = os.read(file, min(limit_bytes, _SMALL))
        if len(text) == _SMALL:
            text += os.read(file, limit_bytes - _SMALL)
        return text
    finally:
        os.close(file)
