"""No yes and no offer leaves the daemon before what it says is on the disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.faults.capabilities import need_strace
from tests.faults.tracing import traced
from tests.journeys.rig.computer import Computer

_CALLS = "trace=pwrite64,fdatasync,sendto"
_LOG_CALL = re.compile(r"(pwrite64|fdatasync)\(\d+<[^>]*journal\.sqlite3-wal>")
_WORD = re.compile(r'sendto\([^"]*"AW1 (reply \d|print \d+ \w+ [1-9])')


def words_before_their_sync(lines: Iterable[str]) -> tuple[int, list[str]]:
    """How many replies and offers there were, and those that came too early.

    Too early: the log was written and not yet synced, or since the word before it
    was not written at all, although each of these words stands for a commit.
    """
    count, early, is_synced, was_written = 0, [], True, False
    for line in lines:
        if found := _LOG_CALL.search(line):
            is_synced = found[1] == "fdatasync"
            was_written = was_written or not is_synced
        elif _WORD.search(line):
            count += 1
            if not (is_synced and was_written):
                early.append(line)
            was_written = False
    return count, early


@pytest.mark.crash
@pytest.mark.slow
async def test_a_yes_and_an_offer_come_after_the_sync_of_what_they_stand_for(
    computer: Computer, tmp_path: Path
) -> None:
    need_strace()
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    record = tmp_path / "calls"
    options = ("-y", "-s", "40", "-e", _CALLS)
    async with traced(daemon.pid, *options, record=record):
        for number in range(3):
            await alice.send("bob", f"number {number}")
            page = await bob.mail()
            message_id = re.findall(r"msg-[0-9a-f-]{36}", page)[0]
            await bob.verb("ack", message_id=message_id, delivery="processed")

    count, early = words_before_their_sync(record.read_text().splitlines())
    assert count == 9
    assert early == []


WRITE = '1 pwrite64(5</s/journal.sqlite3-wal>, "x", 24, 32) = 24'
SYNC = "1 fdatasync(5</s/journal.sqlite3-wal>) = 0"
REPLY = '2 sendto(9<UNIX:[1]>, "AW1 reply 9\\n"..., 21, 0, NULL, 0) = 21'


@pytest.mark.parametrize(
    ("lines", "early"),
    [
        ([WRITE, SYNC, REPLY], 0),
        ([WRITE, SYNC, WRITE, REPLY], 1),
        ([WRITE, REPLY, SYNC], 1),
        ([REPLY], 1),
        ([WRITE, SYNC, REPLY, REPLY], 1),
    ],
)
def test_a_word_before_its_sync_would_be_seen(lines: list[str], early: int) -> None:
    assert len(words_before_their_sync(lines)[1]) == early
