"""No yes and no offer leaves the daemon before what it says is on the disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.faults.capabilities import need_strace
from tests.faults.tracing import traced
from tests.journeys.rig.computer import Computer

_CALLS = "trace=pwrite64,fdatasync,sendto,recvfrom"
_WRITTEN = re.compile(r"pwrite64\(\d+<[^>]*journal\.sqlite3-wal>")
# A call that another thread's interrupts in the record ends in a line of its own.
_SYNCED = re.compile(
    r"(fdatasync\(\d+<[^>]*journal\.sqlite3-wal>|fdatasync resumed>)\)\s+= 0"
)
_REQUEST = re.compile(r'recvfrom\([^"]*"AW1 (call|hook)')
_WORD = re.compile(r'sendto\([^"]*"AW1 (reply \d|print \d+ \w+ [1-9])')


def words_before_their_sync(lines: Iterable[str]) -> tuple[int, list[str]]:
    """How many replies and offers there were, and those that came too early.

    Each of these words stands for a commit. Too early: since the request that it
    answers, the log was not written and then synced. What else is being written
    meanwhile does not matter.
    """
    count, early, was_written, is_synced = 0, [], False, False
    for line in lines:
        if _WRITTEN.search(line):
            was_written = True
        elif _SYNCED.search(line):
            is_synced = was_written
        elif _REQUEST.search(line):
            was_written = is_synced = False
        elif _WORD.search(line):
            count += 1
            if not is_synced:
                early.append(line)
            was_written = is_synced = False
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
BEGUN = "1 fdatasync(5</s/journal.sqlite3-wal> <unfinished ...>"
ENDED = "1 <... fdatasync resumed>)           = 0"
REPLY = '2 sendto(9<UNIX:[1]>, "AW1 reply 9\\n"..., 21, 0, NULL, 0) = 21'
ASKED = '2 recvfrom(9<UNIX:[1]>, "AW1 call 30\\n"..., 65536, 0, NULL, NULL) = 42'


@pytest.mark.parametrize(
    ("lines", "early"),
    [
        ([ASKED, WRITE, SYNC, REPLY], 0),
        ([ASKED, WRITE, SYNC, WRITE, REPLY], 0),  # the second is another's
        ([ASKED, WRITE, BEGUN, ENDED, REPLY], 0),
        ([ASKED, WRITE, BEGUN, REPLY, ENDED], 1),
        ([ASKED, WRITE, REPLY, SYNC], 1),
        ([ASKED, SYNC, WRITE, REPLY], 1),
        ([WRITE, SYNC, ASKED, REPLY], 1),
        ([WRITE, ASKED, SYNC, REPLY], 1),
        ([ASKED, REPLY], 1),
        ([ASKED, WRITE, SYNC, REPLY, REPLY], 1),
    ],
)
def test_a_word_before_its_sync_would_be_seen(lines: list[str], early: int) -> None:
    assert len(words_before_their_sync(lines)[1]) == early
