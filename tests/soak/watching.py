"""What the processes cost and leave behind: memory, descriptors, zombies, tracebacks.

Owns the reading of /proc and of logs. Promises to say only what does not pass:
growth between a warmed up process and its end, and what no log may hold.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import trio
from msgspec import Struct

from tests.soak.evidence import Note

# Rows of a few thousand messages and what the allocator keeps are no leak.
GROWTH_KIB = 12 * 1024
STILL_KIB = 1024
LOOK_EVERY_S = 2.0
LOADS_WITHIN_S = 20.0
# At rest: a stream for each attachment at both ends, a watch on its process at ours.
DESCRIPTORS_EACH = {"bridge": 2, "server": 1}
SPARE_DESCRIPTORS = 40
# It gives up after 2.3 s at most; the rest is for a computer that is busy.
HOOK_ENDS_S = 8.0
_MAY_NOT_STAND = ("Traceback", "ExceptionGroup", "Task was destroyed", "never awaited")


class Sample(Struct, frozen=True):
    """One process at one moment."""

    pid: int
    memory_kib: int
    descriptors: int


def sample(pid: int) -> Sample:
    """What it holds now."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return Sample(pid, int(memory.split()[1]), len(os.listdir(f"/proc/{pid}/fd")))


async def at_rest(pid: int) -> Sample:
    """What it holds once it has loaded what it was about to load."""
    before, now = Sample(pid, 0, 0), sample(pid)
    with trio.move_on_after(LOADS_WITHIN_S):
        while now.memory_kib - before.memory_kib > STILL_KIB:
            await trio.sleep(LOOK_EVERY_S)
            before, now = now, sample(pid)
    return now


def growth(which: str, warm: Sample, end: Sample, attachments: int) -> Iterator[str]:
    """What is not flat."""
    if warm.pid != end.pid:
        yield f"the {which} was started again after it was warm"
        return
    if end.memory_kib - warm.memory_kib > GROWTH_KIB:
        yield f"the {which} grew from {warm.memory_kib} to {end.memory_kib} KiB"
    most = DESCRIPTORS_EACH[which] * attachments + SPARE_DESCRIPTORS
    if end.descriptors > most:
        yield f"the {which} holds {end.descriptors} descriptors at rest"


def zombies(parents: set[int]) -> Iterator[str]:
    """Ended children of these processes that nobody has waited for."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if state == "Z" and int(parent) in parents:
            yield f"process {name}) is a zombie of {parent}"


def hooks_that_broke(notes: list[Note]) -> Iterator[str]:
    """A host's turn never breaks: the hook client ends in time, and with 0."""
    for note in notes:
        if note["what"] != "hook" or note["kind"] != "plain":
            continue
        took_s = note["at"] - note["began"]
        if note["ended"] != "exit 0" or took_s > HOOK_ENDS_S:
            yield f"a hook of {note['agent']}: {note['ended']} after {took_s:.1f} s"


def shouts(logs: Path) -> Iterator[str]:
    """Lines that no log may hold, with the log's name."""
    for file in sorted(logs.iterdir()):
        lines = file.read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            if any(word in line for word in _MAY_NOT_STAND):
                yield f"{file.name}:{number}: {line[:300]}"
