"""How much waits in a journal, read from outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.core.effects import (
    SaveAttachment,
    SaveDelivery,
    SaveMessage,
    SaveSubmission,
)
from bridge.core.records import DeliveryState, SubmissionState
from bridge.store.journal import Journal
from bridge.store.waiting import Waiting, waiting
from tests.fakes.clock import FakeClock
from tests.store.examples import attachment, pending, submission


async def fill(journal: Journal) -> None:
    """Two messages that wait and one that does not; two texts of which one is out."""
    processed = replace(pending(3), state=DeliveryState.PROCESSED, body=None)
    await journal.commit(
        [
            SaveAttachment(attachment()),
            SaveMessage(pending(1)),
            SaveMessage(pending(2)),
            SaveMessage(pending(3)),
            SaveDelivery(processed),
            SaveSubmission(submission(1, state=SubmissionState.QUEUED)),
            SaveSubmission(submission(2, state=SubmissionState.ACCEPTED)),
        ]
    )


async def test_what_waits_is_counted_while_a_bridge_runs_and_after(path: Path) -> None:
    async with await Journal.open(path, FakeClock()) as journal:
        await fill(journal)
        during = waiting(path)
        await journal.ping()

    assert during == waiting(path) == Waiting(pending=2, unsent=1)


def test_where_no_journal_is_nothing_waits(path: Path) -> None:
    assert waiting(path) == Waiting()
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"no database" * 400])
def test_a_file_that_is_no_journal_cannot_be_counted(
    path: Path, content: bytes
) -> None:
    path.write_bytes(content)

    assert waiting(path) is None
    assert path.read_bytes() == content
