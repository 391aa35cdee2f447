"""A disk whose power is cut: what a recorded run would have left on it.

Owns the recording of one writer's calls (by strace) and the model of a disk that
keeps them. Promises the worst that a journalling file system may do: what was
written since a file's last sync is there in any 512-byte sectors and in any
order, or not at all, and names changed since their folder's last sync are an
earlier state of that folder. What the memory map of the `-shm` file holds is
never there.
"""

from __future__ import annotations

import random  # noqa: TID251 (seeded: the same cuts each time)
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

SECTOR_BYTES = 512
Chance = random.Random
_CALLS = "openat,pwrite64,write,fdatasync,fsync,ftruncate,unlink,rename"
_RECORD_S = 120

_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) = (-?\d+)")
_FILE = re.compile(r"^\d+<((?:\\x[0-9a-f]{2})*)>")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_NUMBER = re.compile(r", (\d+)$")


class Wrote(Struct, frozen=True):
    """Bytes of one file."""

    path: str
    offset: int
    content: bytes


class Resized(Struct, frozen=True):
    """A file's new length in bytes."""

    path: str
    size: int


class Synced(Struct, frozen=True):
    """A file or a folder; everything of it so far is on the disk."""

    path: str


class Named(Struct, frozen=True):
    """A file is created, renamed to `path`, or (None) loses the name `old`."""

    path: str | None
    old: str | None = None


class Confirmed(Struct, frozen=True):
    """The writer said that everything up to this number is saved."""

    number: int


Call = Wrote | Resized | Synced | Named | Confirmed


# ---- recording -------------------------------------------------------------------


def record(command: Sequence[str], folder: Path, said: Path, trace: Path) -> list[Call]:
    """Run the command; its calls on files below `folder`, and what it said yes to.

    It confirms by writing a number to `said`, which is in no folder of the record.
    """
    strace = ["strace", "-f", "-qq", "-y", "-xx", "-s", "70000", "-o", str(trace)]
    subprocess.run(
        [*strace, "-e", f"trace={_CALLS}", *command], check=True, timeout=_RECORD_S
    )
    return [
        call
        for line in trace.read_text("ascii").splitlines()
        for call in _calls(line)
        if isinstance(call, Confirmed) or _is_below(folder, call)
    ]


def _is_below(folder: Path, call: Wrote | Resized | Synced | Named) -> bool:
    path = call.path or getattr(call, "old", None) or ""
    return Path(path).is_relative_to(folder) and not path.endswith("-shm")


def _calls(line: str) -> Iterator[Call]:
    # One thread writes while all others wait for it: no call is ever interleaved.
    found = _LINE.match(line)
    if found is None or int(found[3]) < 0:
        return
    name, arguments = found[1], found[2]
    texts = [_bytes(text) for text in _TEXT.findall(arguments)]
    opened = _FILE.match(arguments)
    path = _bytes(opened[1]).decode() if opened else ""
    number = _NUMBER.search(arguments)
    match name:
        case "openat" if "O_CREAT" in arguments:
            yield Named(texts[0].decode())
        case "unlink":
            yield Named(None, texts[0].decode())
        case "rename":
            yield Named(texts[1].decode(), texts[0].decode())
        case "fdatasync" | "fsync":
            yield Synced(path)
        case "ftruncate" if number:
            yield Resized(path, int(number[1]))
        case "pwrite64" if number:
            yield Wrote(path, int(number[1]), texts[0])
        case "write" if path.endswith("/said"):
            yield Confirmed(int(texts[0]))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


# ---- the disk --------------------------------------------------------------------


class Disk:
    """What has reached it surely, and what is still on its way."""

    def __init__(self) -> None:
        self.confirmed = 0
        self._names: dict[str, int] = {}  # as the writer sees them
        self._kept_names: dict[str, int] = {}
        self._name_changes: list[dict[str, int | None]] = []
        self._kept: dict[int, bytes] = {}
        self._on_the_way: dict[int, list[Wrote | Resized]] = {}

    def take(self, call: Call) -> None:
        """The writer makes this call."""
        match call:
            case Confirmed(number=number):
                self.confirmed = number
            case Named():
                self._change_names(call)
            case Synced(path=path) if path in self._names:
                self._sync_file(self._names[path])
            case Synced(path=path):
                assert all(Path(name).parent == Path(path) for name in self._names)
                self._kept_names = dict(self._names)
                self._name_changes.clear()
            case Wrote() | Resized():
                self._on_the_way[self._names[call.path]].append(call)

    def after_power_cut(self, chance: Chance) -> dict[str, bytes]:
        """The files, by name, that a start could find; changes nothing here."""
        names: dict[str, int | None] = dict(self._kept_names)
        for change in self._name_changes[: chance.randint(0, len(self._name_changes))]:
            names |= change
        return {
            name: self._survivor(file, chance)
            for name, file in names.items()
            if file is not None
        }

    def _change_names(self, call: Named) -> None:
        change: dict[str, int | None] = {}
        file = self._names.pop(call.old) if call.old else None
        if call.old:
            change[call.old] = None
        if call.path and (call.old or call.path not in self._names):
            file = len(self._kept) if file is None else file
            self._kept.setdefault(file, b"")
            self._on_the_way.setdefault(file, [])
            self._names[call.path] = change[call.path] = file
        self._name_changes.append(change)

    def _sync_file(self, file: int) -> None:
        for call in self._on_the_way[file]:
            self._kept[file] = _applied(self._kept[file], call)
        self._on_the_way[file].clear()

    def _survivor(self, file: int, chance: Chance) -> bytes:
        pieces = [piece for call in self._on_the_way[file] for piece in _pieces(call)]
        share = chance.choice((0.1, 0.5, 0.9))
        some = [piece for piece in pieces if chance.random() < share]
        chance.shuffle(some)
        content = self._kept[file]
        for piece in some:
            content = _applied(content, piece)
        return content


def _pieces(call: Wrote | Resized) -> Iterator[Wrote | Resized]:
    """What the disk keeps or loses by itself: the sectors of a write."""
    if isinstance(call, Resized):
        yield call
        return
    at, end = call.offset, call.offset + len(call.content)
    while at < end:
        stop = min(end, (at // SECTOR_BYTES + 1) * SECTOR_BYTES)
        part = call.content[at - call.offset : stop - call.offset]
        yield Wrote(call.path, at, part)
        at = stop


def _applied(content: bytes, call: Wrote | Resized) -> bytes:
    if isinstance(call, Resized):
        return content[: call.size].ljust(call.size, b"\0")
    before = content[: call.offset].ljust(call.offset, b"\0")
    return before + call.content + content[call.offset + len(call.content) :]
