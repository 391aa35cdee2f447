"""The power fails at any moment: what was confirmed is there, and all is whole."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from bridge.errors import StorageBroken
from bridge.store.journal import Journal
from tests.fakes.clock import FakeClock
from tests.faults import saver
from tests.faults.capabilities import need_strace
from tests.faults.power_loss import (
    Call,
    Chance,
    Disk,
    Named,
    Resized,
    Synced,
    Wrote,
    record,
)
from tests.store.examples import ATTACHMENT_ID

CUTS_AT_EACH_CALL = 3
SEED = 7
NAME = "journal.sqlite3"


class Found(Struct, frozen=True):
    """What a start found; None rounds for a journal that is not whole."""

    confirmed: int
    rounds: int | None


async def found_after(disk: Disk, folder: Path, chance: Chance) -> Found:
    """Cut the power, and start."""
    folder.mkdir(mode=0o700)
    try:
        for path, content in disk.after_power_cut(chance).items():
            file = folder / Path(path).name
            file.write_bytes(content)
            file.chmod(0o600)
        return Found(disk.confirmed, await rounds_in(folder / NAME))
    finally:
        shutil.rmtree(folder)


async def rounds_in(path: Path) -> int | None:
    """How many rounds the journal holds; None when it is not whole."""
    try:
        async with await Journal.open(path, FakeClock()) as journal:
            if await journal._database.read(complaint) != "ok":
                return None
            rows = await journal.deliveries(ATTACHMENT_ID)
            records = await journal.attachments()
    except StorageBroken:
        return None
    watermark = records[0].watermark if records else 0
    is_whole = len(rows) % 2 == 0 and watermark == max(
        (row.sequence for row in rows), default=0
    )
    return len(rows) // 2 if is_whole else None


def complaint(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA integrity_check").fetchone()[0])


async def all_cuts(calls: list[Call], folder: Path) -> list[Found]:
    """Several cuts after each call of the record."""
    disk, chance, found = Disk(), Chance(SEED), []
    for call in calls:
        disk.take(call)
        for _ in range(CUTS_AT_EACH_CALL):
            found.append(await found_after(disk, folder / "cut", chance))
    return found


def recorded(folder: Path, mode: str) -> list[Call]:
    """The calls of the saver; its own folder is of the record, the rest is not."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    said = folder / "said"
    command = [sys.executable, "-m", saver.__name__, str(state / NAME), str(said), mode]
    return record(command, state, said, folder / "trace")


@pytest.fixture
def memory() -> Iterator[Path]:
    """Thousands of short files: in memory where there is such a place."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place, prefix="power-loss-") as made:
        yield Path(made)


@pytest.mark.crash
async def test_a_power_cut_loses_nothing_that_was_confirmed(memory: Path) -> None:
    need_strace()
    found = await all_cuts(recorded(memory, "full"), memory)

    assert max(each.confirmed for each in found) == saver.LIVES * saver.ROUNDS
    assert [each for each in found if each.rounds is None] == []
    assert [each for each in found if (each.rounds or 0) < each.confirmed] == []
    assert len(found) > 400


@pytest.mark.crash
async def test_the_same_cuts_show_what_a_weaker_setting_would_lose(
    memory: Path,
) -> None:
    """With synchronous=NORMAL nothing is damaged, and confirmed rounds are gone."""
    need_strace()
    found = await all_cuts(recorded(memory, "normal"), memory)

    assert [each for each in found if each.rounds is None] == []
    assert len([each for each in found if (each.rounds or 0) < each.confirmed]) > 50


# ---- the disk that the cuts are made on --------------------------------------------


def states(calls: list[Call]) -> set[tuple[tuple[str, bytes], ...]]:
    """What many cuts after these calls leave."""
    disk, chance = Disk(), Chance(SEED)
    for call in calls:
        disk.take(call)
    return {tuple(disk.after_power_cut(chance).items()) for _ in range(200)}


def test_what_was_synced_survives_every_cut() -> None:
    calls: list[Call] = [Named("/f/a"), Wrote("/f/a", 0, b"one")]
    calls += [Synced("/f/a"), Synced("/f")]

    assert states(calls) == {(("/f/a", b"one"),)}


def test_a_file_whose_folder_was_not_synced_may_have_no_name() -> None:
    calls: list[Call] = [Named("/f/a"), Wrote("/f/a", 0, b"one"), Synced("/f/a")]

    assert states(calls) == {(), (("/f/a", b"one"),)}


def test_a_write_that_was_not_synced_may_be_torn_at_a_sector() -> None:
    calls: list[Call] = [Named("/f/a"), Synced("/f"), Wrote("/f/a", 500, b"x" * 24)]
    first, second = b"\0" * 500 + b"x" * 12, b"\0" * 512 + b"x" * 12

    assert states(calls) == {
        (("/f/a", content),) for content in (b"", first, second, first + b"x" * 12)
    }


def test_of_two_writes_that_were_not_synced_either_may_be_kept() -> None:
    calls: list[Call] = [Named("/f/a"), Synced("/f")]
    calls += [Wrote("/f/a", 0, b"one"), Wrote("/f/a", 0, b"two"), Resized("/f/a", 2)]
    contents = {dict(state)["/f/a"] for state in states(calls)}

    assert {b"", b"one", b"two", b"on", b"tw"} <= contents


def test_a_name_that_was_not_synced_is_the_old_one_or_the_new_one() -> None:
    calls: list[Call] = [Named("/f/a"), Wrote("/f/a", 0, b"one"), Synced("/f/a")]
    calls += [Synced("/f"), Named("/f/b", old="/f/a")]

    assert states(calls) == {(("/f/a", b"one"),), (("/f/b", b"one"),)}
