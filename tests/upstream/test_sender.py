"""What goes out: in order, once, with the same ids, and never in a storm."""

from __future__ import annotations

import httpx
import msgspec
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from bridge.core.ids import InboxId, SubmissionId
from bridge.core.records import ReceiptState
from bridge.upstream import api
from tests.fakes.scripted_server import (
    HANG,
    Answer,
    refused,
    said,
)
from tests.upstream.sending import (
    ACCEPTED,
    Place,
    receipt,
    submission,
)

# ---- receipts and progress ---------------------------------------------------


def taken(*unknown: str) -> Answer:
    return said({"recorded": [], "unknown": list(unknown)})


async def test_receipts_then_progress_then_submissions_go_out(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.progress = 500_000_007
    place.outbox.add(receipt(1), receipt(1, "processed"), submission(1))
    async with place.sending(
        taken(), said({"offered_through": 500_000_009}), said(ACCEPTED)
    ) as sending:
        pass

    assert [path.rsplit("/", 1)[1] for path in sending.server.paths()] == [
        "receipts",
        "progress",
        "send",
    ]
    first = sending.server.asked(0)["receipts"]
    assert [each["delivery"] for each in first] == ["admitted", "processed"]
    assert place.outbox.told == ["progress 500000009", "sub-1 Accepted"]


async def test_a_receipt_for_an_unknown_message_is_refused_alone(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(receipt(1), receipt(2))
    async with place.sending(taken("msg-2")):
        pass

    states = [each.state for each in place.outbox.receipts]
    assert states == [ReceiptState.SENT, ReceiptState.REFUSED]


async def test_many_receipts_go_out_in_batches(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(*(receipt(number) for number in range(api.RECEIPTS_LIMIT + 1)))
    async with place.sending(taken()) as sending:
        pass

    sizes = [len(sending.server.asked(index)["receipts"]) for index in (0, 1)]
    assert sizes == [api.RECEIPTS_LIMIT, 1]


async def test_a_receipt_that_breaks_a_rule_does_not_stop_the_others(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(receipt(1), receipt(2), receipt(3))
    no = refused(400, "invalid_arguments")
    async with place.sending(no, taken(), no, taken()):
        pass

    states = [each.state.value for each in place.outbox.receipts]
    assert states == ["sent", "refused", "sent"]


async def test_a_receipt_that_could_not_be_sent_is_sent_later(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(receipt(1))
    async with place.sending(httpx.ConnectError("down"), taken(), seconds=2) as sending:
        pass

    assert place.outbox.receipts[0].state is ReceiptState.SENT
    assert len(sending.server.requests) == 2


# ---- submissions -------------------------------------------------------------


async def test_an_accepted_submission_has_the_servers_ids(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(submission(1))
    async with place.sending(said(ACCEPTED)) as sending:
        pass

    row = place.outbox.rows[SubmissionId("sub-1")]
    assert (row.state.value, row.message_id, row.inbox_id) == (
        "accepted",
        "msg-9",
        "inbox-9",
    )
    assert sending.server.asked() == {
        "target": "agent:bob",
        "message": "text 1",
        "submission_id": "sub-1",
    }


async def test_a_reply_goes_to_its_inbox(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    reply = msgspec.structs.replace(
        submission(1, "inbox-1"), target=None, inbox_id=InboxId("inbox-1")
    )
    place.outbox.add(reply)
    async with place.sending(said(ACCEPTED)) as sending:
        pass

    assert sending.server.asked()["inbox_id"] == "inbox-1"
    assert "target" not in sending.server.asked()


async def test_one_lane_goes_out_in_order_one_at_a_time(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(submission(2), submission(1), submission(3))
    async with place.sending(said(ACCEPTED)) as sending:
        pass

    assert sending.sent_ids() == ["sub-1", "sub-2", "sub-3"]
    assert place.outbox.states() == ["accepted"] * 3


async def test_a_slow_lane_does_not_hold_up_another(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    """Only four lanes at once, so that one attachment does not use up the pool."""
    place.outbox.add(*(submission(number, f"agent:a{number}") for number in range(6)))
    async with place.sending(Answer(200, {}, [5.0, msgspec.json.encode(ACCEPTED)])):
        assert place.outbox.in_flight() == 4


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "not_found"),
        (409, "inbox_full"),
        (409, "submission_conflict"),
        (422, "invalid_message"),
        (413, "too_large"),
        (400, "invalid_arguments"),
    ],
)
async def test_a_refused_submission_blocks_nothing_behind_it(
    place: Place, autojump_clock: MockClock, status: int, code: str
) -> None:
    place.outbox.add(submission(1), submission(2))
    async with place.sending(refused(status, code), said(ACCEPTED)) as sending:
        assert sending.end is None

    assert place.outbox.states() == ["refused", "accepted"]
    row = place.outbox.rows[SubmissionId("sub-1")]
    assert (row.refusal_code, row.refusal) == (code, f"no: {code}.")


@pytest.mark.parametrize(
    "lost",
    [
        httpx.ReadError("reset"),
        httpx.ConnectError("down"),
        Answer(500),
        Answer(200, {}, [b"<html>"]),
        Answer(200, {}, [HANG]),
        refused(503, "stopping"),
    ],
)
async def test_a_lost_answer_asks_again_with_the_same_id(
    place: Place, autojump_clock: MockClock, lost: Answer | Exception
) -> None:
    place.outbox.add(submission(1), submission(2))
    async with place.sending(lost, said(ACCEPTED), seconds=12) as sending:
        pass

    assert sending.sent_ids() == ["sub-1", "sub-1", "sub-2"]
    assert place.outbox.told == ["sub-1 ReplyLost", "sub-1 Accepted", "sub-2 Accepted"]


async def test_a_busy_conversation_stops_only_its_own_lane(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(submission(1, "agent:a"), submission(2, "agent:b"))
    busy = refused(429, "conversation_rate", {"Retry-After": "60"})
    async with place.sending(busy, said(ACCEPTED), seconds=59) as sending:
        # Which of the two was asked first is the scheduler's choice.
        assert sorted(place.outbox.states()) == ["accepted", "waiting"]
        assert sorted(sending.sent_ids()) == ["sub-1", "sub-2"]
        for _ in range(3):
            place.clock.advance(1)
            await trio.sleep(1)
        assert place.outbox.states() == ["accepted", "accepted"]


async def test_a_busy_server_is_left_alone_as_long_as_it_asks(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(submission(1, "agent:a"))
    busy = refused(503, "storage_busy", {"Retry-After": "60"})
    async with place.sending(busy, said(ACCEPTED), seconds=30) as sending:
        place.outbox.add(submission(2, "agent:b"))
        sending.sender.server_heard()
        await trio.sleep(29)
        assert sending.sent_ids() == ["sub-1"]
        place.clock.advance(60)
        await trio.sleep(60)
        assert sorted(sending.sent_ids()) == ["sub-1", "sub-1", "sub-2"]


async def test_a_server_that_says_again_at_once_still_gets_a_moment(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(submission(1))
    busy = refused(429, "conversation_rate", {"Retry-After": "0"})
    async with place.sending(busy, seconds=10) as sending:
        assert 2 <= len(sending.sent_ids()) <= 11


async def test_a_server_that_is_down_is_asked_seldom(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(submission(1))
    async with place.sending(httpx.ConnectError("down"), seconds=3600) as sending:
        assert 120 <= len(sending.server.requests) <= 600


async def test_a_server_that_is_heard_again_is_asked_at_once(
    place: Place,
    autojump_clock: MockClock,
) -> None:
    place.outbox.add(submission(1))
    async with place.sending(httpx.ConnectError("down"), seconds=600) as sending:
        sending.server.answers = [said(ACCEPTED)]
        sending.sender.server_heard()
        await trio.testing.wait_all_tasks_blocked()
        assert place.outbox.states() == ["accepted"]
