"""A start: what was out is unsure, what is verified is attached, no more."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import SaveAttachment, SaveForeignReceipt, SaveSubmission
from bridge.core.ids import SessionId, SubmissionId
from bridge.core.records import (
    Attachment,
    AttachmentState,
    DeliveryState,
    OfferOutcome,
    ProcessKey,
    Receipt,
    Submission,
    SubmissionState,
)
from bridge.driver import persons, receiving, restoring
from bridge.driver.bridge import Bridge
from bridge.driver.offering import make_offer
from bridge.driver.queue import AttachmentQueue
from bridge.errors import EXIT_CONFIG, StorageBroken, Unavailable
from bridge.providers import process
from tests.core.examples import BOB
from tests.driver.desk import OCCASION, Route, incoming, open_bridge
from tests.driver.full_journal import FullJournal
from tests.fakes.clock import FakeClock
from tests.store.elsewhere import read_bytes


def living() -> Attachment:
    """A script's attachment whose process is this test."""
    facts = process.facts_of(os.getpid())
    assert facts is not None
    key = process.key_of(facts)
    return replace(
        BOB,
        provider="script",
        process_key=key,
        session_id=SessionId(key.text()),
        setup_at=1.0,
        guidance_at=1_790_000_000.0,
    )


async def kept(bridge: Bridge, record: Attachment) -> AttachmentQueue:
    await bridge.commit([SaveAttachment(record)])
    queue = bridge.new_queue(record)
    bridge.roster.add(queue)
    return queue


def only(bridge: Bridge) -> AttachmentQueue:
    (queue,) = bridge.roster
    return queue


async def test_an_offer_that_was_out_is_unsure_after_a_start(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await kept(bridge, living())
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        with trio.CancelScope() as scope:

            async def die(offer_id: str, text: str) -> OfferOutcome:
                scope.cancel()
                raise RuntimeError("the daemon dies here")

            with contextlib.suppress(RuntimeError):
                await make_offer(queue, OCCASION, bridge.clock, die)
    async with open_bridge(tmp_path) as bridge:
        await restoring.restore(bridge)
        (row,) = only(bridge).deliveries.values()

        assert row.state is DeliveryState.AMBIGUOUS
        assert row.body is None
        assert [each.delivery for each in only(bridge).unsent_receipts()] == ["unsure"]
        assert await bridge.journal.offers_out() == []


async def test_a_live_process_is_attached_again(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        await kept(bridge, living())
    async with open_bridge(tmp_path) as bridge:
        await restoring.restore(bridge)

        assert only(bridge).record.state is AttachmentState.ATTACHED


async def test_a_dead_or_another_process_is_offline(tmp_path: Path) -> None:
    reused = replace(
        living(), process_key=ProcessKey(process.boot_id(), os.getpid(), 1)
    )
    async with open_bridge(tmp_path) as bridge:
        await kept(bridge, reused)
    async with open_bridge(tmp_path) as bridge:
        await restoring.restore(bridge)

        assert only(bridge).record.state is AttachmentState.OFFLINE


async def test_a_boot_of_the_computer_ends_every_session(tmp_path: Path) -> None:
    key = living().process_key
    before = replace(living(), process_key=replace(key, boot_id="another boot"))
    async with open_bridge(tmp_path) as bridge:
        await kept(bridge, before)
    async with open_bridge(tmp_path) as bridge:
        await restoring.restore(bridge)

        assert only(bridge).record.state is AttachmentState.OFFLINE


async def test_a_submission_that_was_under_way_is_uncertain(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await kept(bridge, replace(living(), state=AttachmentState.OFFLINE))
        row = Submission(
            SubmissionId("sub-1"),
            queue.record.attachment_id,
            queue.record.agent_id,
            "agent:alice",
            "hash",
            number=7,
            body="hello",
            target="agent:alice",
            state=SubmissionState.IN_FLIGHT,
        )
        await queue.commit([SaveSubmission(row)])
    async with open_bridge(tmp_path) as bridge:
        await restoring.restore(bridge)
        (found,) = only(bridge).submissions.values()

        assert found.state is SubmissionState.UNCERTAIN
        assert bridge.next_submission_number() == 8


async def test_waiting_mail_is_still_there_after_a_start(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await kept(bridge, living())
        await receiving.receive(bridge, queue, incoming(1), 1.0)
    async with open_bridge(tmp_path) as bridge:
        await restoring.restore(bridge)
        (row,) = only(bridge).deliveries.values()

        assert row.state is DeliveryState.PENDING
        assert row.body == "Ready for review."
        assert only(bridge).usage().body_bytes == len(b"Ready for review.")


async def test_an_id_acknowledged_by_hand_is_remembered_over_a_start(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await kept(bridge, living())
        receipt = Receipt(
            queue.record.attachment_id, incoming(1).message_id, "processed", 1.0
        )
        await queue.commit([SaveForeignReceipt(receipt)])
    async with open_bridge(tmp_path) as bridge:
        await restoring.restore(bridge)
        await receiving.receive(bridge, only(bridge), incoming(1), 1.0)

        assert dict(only(bridge).deliveries) == {}


async def test_a_full_disk_does_not_end_the_tidying(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_bridge(tmp_path, FullJournal) as bridge:
        journal, clock = bridge.journal, bridge.clock
        assert isinstance(journal, FullJournal)
        assert isinstance(clock, FakeClock)
        queue = await kept(bridge, living())
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        route = Route(OfferOutcome.EMITTED)
        await make_offer(queue, OCCASION, clock, route.emit)
        clock.advance(8 * 24 * 3600.0)
        journal.has_room = False
        bridge.nursery.start_soon(restoring.keep_tidy, bridge)
        await trio.sleep(restoring.CHECKPOINT_EVERY_S / 2)
        assert queue.deliveries

        journal.has_room = True
        # No limit in virtual time: it runs on while the writer's thread works.
        while queue.deliveries:  # noqa: ASYNC110 - a round says nothing
            await trio.sleep(1)


@pytest.mark.parametrize(
    ("state", "is_kept"),
    [(SubmissionState.ORPHANED, True), (SubmissionState.ACCEPTED, False)],
)
async def test_what_waits_to_be_sent_outlives_its_lease(
    tmp_path: Path, state: SubmissionState, is_kept: bool
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await kept(bridge, replace(living(), state=AttachmentState.REPLACED))
        row = Submission(
            SubmissionId("sub-1"),
            queue.record.attachment_id,
            queue.record.agent_id,
            "agent:alice",
            "hash",
            state=state,
        )
        await queue.commit([SaveSubmission(row)])
        await tidied(bridge)

        assert (queue in list(bridge.roster)) is is_kept
        assert bool(await bridge.journal.attachments()) is is_kept


async def test_a_submission_id_is_known_after_its_lease_has_ended(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await kept(bridge, replace(living(), state=AttachmentState.REPLACED))
        row = Submission(
            SubmissionId("sub-1"),
            queue.record.attachment_id,
            queue.record.agent_id,
            "agent:alice",
            "hash",
            state=SubmissionState.ACCEPTED,
            created_at=bridge.clock.wall(),
        )
        await queue.commit([SaveSubmission(row)])
        await tidied(bridge)

        known = await bridge.journal.submission(row.agent_id, row.submission_id)
        assert known == row


async def test_a_sign_that_no_server_takes_keeps_nothing_for_ever(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await kept(bridge, replace(living(), state=AttachmentState.REPLACED))
        receipt = Receipt(
            queue.record.attachment_id, incoming().message_id, "unsure", 1
        )
        await queue.commit([SaveForeignReceipt(receipt)])
        await tidied(bridge)

        assert list(bridge.roster) == []


async def test_processes_that_are_gone_are_not_remembered(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        gone = ProcessKey(process.boot_id(), os.getpid(), 1)
        bridge.heard = {gone: "one", living().process_key: "another"}
        await tidied(bridge)

        assert list(bridge.heard) == [living().process_key]


async def tidied(bridge: Bridge) -> None:
    """One round of tidying has passed."""
    bridge.nursery.start_soon(restoring.keep_tidy, bridge)
    await trio.testing.wait_all_tasks_blocked(0.05)


# ---- the journal's file, looked after once a minute -------------------------------


def moved(path: Path) -> None:
    path.rename(path.with_name("moved"))


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    shutil.copy2(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


@pytest.mark.parametrize("change", [moved, removed, replaced])
async def test_a_journal_that_is_no_longer_ours_stops_the_bridge_within_a_minute(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
    change: Callable[[Path], None],
) -> None:
    async with open_bridge(tmp_path) as bridge:
        bridge.nursery.start_soon(restoring.keep_tidy, bridge)
        await trio.sleep(restoring.CHECKPOINT_EVERY_S / 2)
        assert not bridge.stopping.is_set()
        begun = trio.current_time()

        change(tmp_path / "journal.sqlite3")
        await bridge.stopping.wait()

        # Virtual time passes while the journal's thread works: it was the next look.
        assert trio.current_time() - begun <= restoring.CHECKPOINT_EVERY_S
        assert bridge.broken is not None
        assert bridge.broken.exit_code == EXIT_CONFIG
        assert "moved, removed or replaced" in bridge.broken.message


async def test_a_journal_that_was_moved_away_still_holds_all_when_it_is_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.sqlite3"
    async with open_bridge(tmp_path) as bridge:
        queue = await kept(bridge, living())
        moved(path)
        await receiving.receive(bridge, queue, incoming(1), 1000.0)
        with pytest.raises(StorageBroken):
            await bridge.tidy_journal()

    path.with_name("moved").rename(path)
    async with open_bridge(tmp_path) as bridge:
        await restoring.restore(bridge)
        assert len(only(bridge).deliveries) == 1


async def test_a_program_that_keeps_the_log_is_shown_until_it_has_gone(
    tmp_path: Path,
) -> None:
    async with open_bridge(tmp_path) as bridge:
        await kept(bridge, living())
        other = sqlite3.connect(tmp_path / "journal.sqlite3", isolation_level=None)
        with contextlib.closing(other):
            other.execute("BEGIN")
            other.execute("SELECT * FROM attachment").fetchall()
            await bridge.commit([SaveAttachment(living())])
            with pytest.raises(Unavailable):
                await bridge.tidy_journal()
            (warning,) = persons.status(bridge).warnings
        await bridge.tidy_journal()

        assert "Another program holds the journal" in warning
        assert persons.status(bridge).warnings == ()


async def test_an_idle_bridge_has_no_text_left_of_what_it_offered(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_bridge(tmp_path) as bridge:
        queue = await kept(bridge, living())
        arriving = incoming(1, "cnry-offered-4d11")
        await receiving.receive(bridge, queue, arriving, 1000.0)
        route = Route(OfferOutcome.EMITTED)
        await make_offer(queue, OCCASION, bridge.clock, route.emit)
        files = sorted(tmp_path.glob("journal.sqlite3*"))
        assert b"cnry-offered-4d11" in read_bytes(*files)

        bridge.nursery.start_soon(restoring.keep_tidy, bridge)
        while b"cnry-offered-4d11" in read_bytes(*files):  # noqa: ASYNC110 - files say nothing
            await trio.sleep(1)
