"""A log beside the journal that is not the one it was left with."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bridge.core.effects import SaveAttachment
from bridge.errors import StorageBroken
from bridge.store.journal import Journal
from tests.fakes.clock import FakeClock
from tests.store import elsewhere
from tests.store.examples import attachment

LOG_HEADER, FRAME = 32, 24 + 4096
CHECKPOINTED, LAST = 3, 7


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


async def left_behind(path: Path) -> tuple[bytes, bytes]:
    """A journal and its log, as a killed daemon leaves them."""
    async with await Journal.open(path, FakeClock()) as journal:
        for number in range(1, LAST + 1):
            await journal.commit([SaveAttachment(attachment(watermark=number))])
            if number == CHECKPOINTED:
                await journal.checkpoint()
        return elsewhere.read_bytes(path), elsewhere.read_bytes(log_of(path))


def place(folder: Path, content: bytes, log: bytes) -> Path:
    """The two files in a folder of their own."""
    folder.mkdir(mode=0o700)
    path = folder / "journal.sqlite3"
    for file, held in ((path, content), (log_of(path), log)):
        file.write_bytes(held)
        file.chmod(0o600)
    return path


async def watermark_in(path: Path) -> int:
    async with await Journal.open(path, FakeClock()) as journal:
        [found] = await journal.attachments()
        return found.watermark


async def test_a_log_cut_anywhere_gives_the_last_whole_commit(tmp_path: Path) -> None:
    """At each frame's boundary, one byte before it and one after."""
    content, log = await left_behind(tmp_path / "journal.sqlite3")
    frames = (len(log) - LOG_HEADER) // FRAME
    assert frames >= LAST - CHECKPOINTED
    edges = [LOG_HEADER + FRAME * frame for frame in range(frames + 1)]
    cuts = {edge + by for edge in (0, *edges) for by in (-1, 0, 1)}
    found = []
    for cut in sorted(cut for cut in cuts if 0 <= cut <= len(log)):
        path = place(tmp_path / f"cut-{cut}", content, log[:cut])
        found.append(await watermark_in(path))

    assert found == sorted(found)
    assert set(found) == set(range(CHECKPOINTED, LAST + 1))


async def test_a_log_with_a_damaged_frame_gives_the_commits_before_it(
    tmp_path: Path,
) -> None:
    content, log = await left_behind(tmp_path / "journal.sqlite3")
    found = []
    for at in range(0, len(log), FRAME // 3):
        damaged = log[:at] + bytes([log[at] ^ 0xFF]) + log[at + 1 :]
        path = place(tmp_path / f"at-{at}", content, damaged)
        found.append(await watermark_in(path))

    assert found == sorted(found)
    assert set(found) == set(range(CHECKPOINTED, LAST))


@pytest.mark.parametrize("filling", [b"", b"\0", b"\xff", b"noise"])
async def test_a_log_that_is_none_changes_nothing(
    tmp_path: Path, filling: bytes
) -> None:
    content, log = await left_behind(tmp_path / "journal.sqlite3")
    path = place(tmp_path / "odd", content, (filling * len(log))[: len(log)])

    assert await watermark_in(path) == CHECKPOINTED


async def test_another_programs_log_is_refused_and_neither_file_written(
    tmp_path: Path,
) -> None:
    content, _ = await left_behind(tmp_path / "journal.sqlite3")
    theirs = tmp_path / "theirs.sqlite3"
    connection = sqlite3.connect(theirs, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE theirs (value)")
    alien = elsewhere.read_bytes(log_of(theirs))
    connection.close()
    path = place(tmp_path / "alien", content, alien)

    with pytest.raises(StorageBroken) as caught:
        await Journal.open(path, FakeClock())

    assert caught.value.exit_code == 78
    assert path.read_bytes() == content
    assert log_of(path).read_bytes() == alien
