"""An attachment's stream through everything a server and a network can do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import httpx
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from bridge.core import reconnect
from bridge.core.effects import SaveForeignReceipt
from bridge.core.ids import MessageId
from bridge.core.records import (
    AttachmentState,
    DeliveryState,
    OfferOutcome,
    Receipt,
    SubmissionState,
)
from bridge.core.tokens import ChildTokens
from bridge.driver import outgoing
from bridge.driver.offering import make_offer
from bridge.driver.queue import AttachmentQueue
from bridge.upstream.bounded import FRAME_LIMIT_BYTES
from bridge.upstream.clients import ServerAddress, open_server
from bridge.upstream.credentials import ChildCredential
from tests.driver.desk import OCCASION, Route
from tests.driver.virtual import (
    HOUR_S,
    START,
    VirtualClock,
    attached,
    attachment,
    cursor_of,
    streaming,
    virtual_bridge,
    watch_sleep,
)
from tests.fakes.routed_server import RoutedServer
from tests.fakes.scripted_server import HANG, Answer, refused, said, stream
from tests.upstream.following import frame
from tests.upstream.test_credentials import GRANT, Kept

POISON = b"data: " + b"x" * FRAME_LIMIT_BYTES
BROKEN = Answer(500, {}, [b"oops"])


def numbers(queue: AttachmentQueue, *states: DeliveryState) -> list[int]:
    """Which messages stand there, as `frame` counts them."""
    return [row.sequence - START for row in queue.in_state(*states)]


def pending(queue: AttachmentQueue) -> list[int]:
    return numbers(queue, DeliveryState.PENDING)


def page(*found: tuple[int, str]) -> Answer:
    """An explicit read with these messages."""
    messages = [
        {
            "message_id": f"msg-{number}",
            "sequence": START + number,
            "inbox_id": "inbox-1",
            "conversation_id": "c",
            "sender": "alice",
            "message": text,
            "sent_at": "2026-11-29T16:05:29Z",
        }
        for number, text in found
    ]
    return said({"messages": messages, "next_cursor": START + len(messages)})


def gaps(times: list[float]) -> list[float]:
    return [later - at for at, later in pairwise(times)]


# ---- a stream that is cut (row 46) ---------------------------------------------------


async def test_a_stream_cut_at_any_byte_goes_on_where_it_was_and_gives_each_once(
    autojump_clock: MockClock,
) -> None:
    whole = frame(1) + frame(2)
    for cut in range(0, len(whole), 5):
        first = [stream([whole[:cut]])]

        def say(request: httpx.Request, first: list[Answer] = first) -> Answer:
            missing = [frame(1), frame(2)][cursor_of(request) :]
            return first.pop() if first else streaming(*missing)

        server = RoutedServer(stream=say)
        async with virtual_bridge(server, VirtualClock()) as bridge:
            queue = await attached(bridge)
            await trio.sleep(60)

            assert pending(queue) == [1, 2], cut
            assert queue.counted == {}, cut
            cursors = [
                cursor_of(each)
                for each in server.requests
                if each.headers.get("accept") == "text/event-stream"
            ]
            assert cursors == [0, int(cut >= len(frame(1)))], cut


# ---- a place that cannot be read (row 49) ------------------------------------------


async def test_what_cannot_be_streamed_three_times_is_taken_by_an_explicit_read(
    autojump_clock: MockClock,
) -> None:
    def say(request: httpx.Request) -> Answer:
        if cursor_of(request) < 2:
            return stream([frame(1), POISON])
        return streaming(frame(3))

    server = RoutedServer(stream=say, read=lambda _: page((2, "small by hand")))
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.sleep(HOUR_S / 60)

        assert pending(queue) == [1, 2, 3]
        words = [word for word, _ in server.asked if word in ("stream", "read")]
        assert words == ["stream", "stream", "stream", "read", "stream"]
        (told,) = bridge.told
        assert "three times at the same place" in told


async def test_what_is_too_large_even_by_hand_is_passed_over(
    autojump_clock: MockClock,
) -> None:
    def say(request: httpx.Request) -> Answer:
        return stream([POISON]) if cursor_of(request) < 1 else streaming(frame(2))

    large = "x" * (FRAME_LIMIT_BYTES + 1)
    server = RoutedServer(stream=say, read=lambda _: page((1, large)))
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.sleep(HOUR_S / 60)

        assert pending(queue) == [2]
        assert queue.record.watermark == START + 2
        assert len(bridge.told) == 1


@pytest.mark.parametrize(
    "read", [lambda _: page(), lambda _: BROKEN], ids=["nothing there", "no answer"]
)
async def test_endless_nonsense_is_no_storm_and_told_once(
    autojump_clock: MockClock,
    read: Callable[[httpx.Request], Answer],
) -> None:
    server = RoutedServer(stream=lambda _: stream([b"\xff"]), read=read)
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.sleep(HOUR_S)

        assert len(server.times()) < 2 * HOUR_S / (reconnect.CAP_S / 2)
        assert len(server.times("read")) <= len(server.times()) / 3
        assert len(bridge.told) == 1
        assert queue.record.watermark == START


# ---- a server that says no (rows 54 and 55) ----------------------------------------


@pytest.mark.parametrize(
    ("renewal", "renewals"),
    [(refused(400, "invalid_grant"), 1), (said(GRANT), 1)],
    ids=["renewal refused", "renewed and refused again"],
)
async def test_a_token_that_is_refused_is_renewed_once_and_never_asked_with_again(
    autojump_clock: MockClock, renewal: Answer, renewals: int
) -> None:
    no = lambda _: refused(401, "invalid_token")  # noqa: E731 - one answer to all
    server = RoutedServer(
        stream=no, progress=no, receipts=no, offline=no, token=lambda _: renewal
    )
    clock, kept = VirtualClock(), Kept()
    kept.tokens = ChildTokens("c", "access-1", "refresh-1", clock.wall_s + 9 * HOUR_S)
    async with open_server(ServerAddress("http://bridge"), server) as other:
        credential = ChildCredential(
            other, attachment(1).attachment_id, kept.tokens, kept, clock
        )
        async with virtual_bridge(server, clock, credential) as bridge:
            queue = await attached(bridge)
            await trio.sleep(60)
            in_a_minute = len(server.asked)
            await trio.sleep(HOUR_S)

            assert len(server.times("token")) == renewals
            assert len(server.times()) <= 2
            assert len(server.asked) == in_a_minute <= 8
            assert queue.record.state is AttachmentState.OFFLINE
            (told,) = bridge.told
            assert "no longer accepts the connection of bob-1" in told


ENDS = [
    (refused(403, "insufficient_scope"), AttachmentState.OFFLINE),
    (refused(404, "not_found"), AttachmentState.REVOKED),
    (refused(409, "conflict"), AttachmentState.REVOKED),
    (refused(410, "gone", state="replaced"), AttachmentState.REPLACED),
    (refused(410, "gone", state="revoked"), AttachmentState.REVOKED),
    (
        stream([b'event: attachment\ndata: {"state":"replaced"}\n\n']),
        AttachmentState.REPLACED,
    ),
]


@pytest.mark.parametrize(("end", "state"), ENDS, ids=range(len(ENDS)))
async def test_a_lease_that_ends_is_fenced_at_once_with_an_offer_out(
    autojump_clock: MockClock, end: Answer, state: AttachmentState
) -> None:
    """What is printed after it counts as shown, and nothing is asked any more."""
    is_over = trio.Event()

    def say(_: httpx.Request) -> Answer:
        return end if is_over.is_set() else stream([frame(1), frame(2), 5.0])

    server = RoutedServer(stream=say)
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.testing.wait_all_tasks_blocked()
        asked_at_end = 0

        async def emit(offer_id: str, text: str) -> OfferOutcome:
            nonlocal asked_at_end
            is_over.set()
            await trio.sleep(3)
            assert queue.record.state is state
            asked_at_end = len(server.asked)
            return OfferOutcome.EMITTED

        await trio.sleep(4.9)
        await make_offer(queue, OCCASION, bridge.clock, emit)
        await trio.sleep(HOUR_S)

        assert queue.record.state is state
        assert numbers(queue, DeliveryState.OFFERED) == [1, 2]
        assert pending(queue) == []
        assert server.times()[-1] < 12
        late = [word for word, _ in server.asked[asked_at_end:]]
        assert late == []
        assert len(queue.unsent_receipts()) == 2


# ---- a server that is not there (rows 53, 56 and 57) -------------------------------


async def test_two_attachments_wait_differently_and_catch_up_oldest_first(
    autojump_clock: MockClock,
) -> None:
    asked_by: dict[str, list[float]] = {"att-1": [], "att-2": []}

    def say(request: httpx.Request) -> Answer:
        who = request.url.path.split("/")[-2]
        asked_by[who].append(trio.current_time())
        if trio.current_time() < HOUR_S:
            return BROKEN
        cursor = cursor_of(request)
        some = range(cursor + 1, min(cursor + 20, 45) + 1)
        return streaming(*(frame(number) for number in some), minutes=0)

    server = RoutedServer(stream=say)
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queues = [await attached(bridge, 1), await attached(bridge, 2)]
        await trio.sleep(HOUR_S + 300)

        for queue, times in zip(queues, asked_by.values(), strict=True):
            waits = gaps([at for at in times if at < HOUR_S])
            assert all(0 <= wait <= reconnect.CAP_S for wait in waits)
            assert max(waits) > reconnect.CAP_S / 2 > min(waits[10:])
            assert len(waits) > HOUR_S / reconnect.CAP_S
            assert pending(queue) == list(range(1, 46))
        assert asked_by["att-1"] != asked_by["att-2"]
        assert not set(gaps(asked_by["att-1"])) & set(gaps(asked_by["att-2"]))


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7.0, 7.5),
        ("1000000000", 900.0, 900.5),
        ("Sun, 20 Sep 2026 16:53:20 GMT", 0.0, 900.5),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0, 0.5),
        ("junk", 0.0, 0.5),
        ("-7", 0.0, 0.5),
        ("1e3", 0.0, 0.5),
    ],
)
async def test_the_servers_floor_is_kept_whatever_the_clock_on_the_wall_does(
    autojump_clock: MockClock, status: int, header: str, least: float, most: float
) -> None:
    answers = [refused(status, "slow", {"Retry-After": header}), streaming(frame(1))]
    server = RoutedServer(stream=lambda _: answers.pop(0))
    clock = VirtualClock()
    async with virtual_bridge(server, clock) as bridge:
        queue = await attached(bridge)
        await trio.testing.wait_all_tasks_blocked()
        clock.wall_s += 10 * 365 * 24 * HOUR_S
        await trio.sleep(HOUR_S / 2)

        (wait,) = gaps(server.times())
        assert least <= wait <= most
        assert pending(queue) == [1]


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("no such host"),
        httpx.ConnectTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("closed in a chunk"),
        OSError(111, "refused"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_network_that_fails_is_tried_again_and_nothing_is_lost(
    autojump_clock: MockClock,
    trouble: Exception,
) -> None:
    def say(_: httpx.Request) -> Answer | Exception:
        return trouble if trio.current_time() < 60 else streaming(frame(1))

    server = RoutedServer(stream=say)
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.sleep(30)
        assert queue.stream_trouble
        await trio.sleep(90)

        assert pending(queue) == [1]
        assert queue.stream_trouble == ""
        assert len(server.times()) < 30


async def test_a_silent_server_is_left_after_25_seconds_and_asked_again(
    autojump_clock: MockClock,
) -> None:
    answers = [stream([frame(1), HANG]), streaming(frame(2))]
    server = RoutedServer(stream=lambda _: answers.pop(0))
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.sleep(60)

        (wait,) = gaps(server.times())
        assert 25 <= wait <= 25.5
        assert pending(queue) == [1, 2]


# ---- a server that repeats, forgets or talks nonsense (rows 58, 61 and 62) ---------


async def test_a_server_whose_cursor_went_back_is_read_again_and_repeats_nothing(
    autojump_clock: MockClock,
) -> None:
    answers = [
        stream([frame(1), frame(2)]),
        stream([frame(1), frame(2)]),
        streaming(frame(1), frame(2), frame(3)),
    ]
    server = RoutedServer(stream=lambda _: answers.pop(0))
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.testing.wait_all_tasks_blocked()
        route = Route(OfferOutcome.EMITTED, OfferOutcome.EMITTED)
        await make_offer(queue, OCCASION, bridge.clock, route.emit)
        await trio.sleep(60)
        await make_offer(queue, OCCASION, bridge.clock, route.emit)

        shown = "".join(route.texts)
        assert [shown.count(f" msg-{number},") for number in (1, 2, 3)] == [1, 1, 1]
        assert queue.record.watermark == START + 3


async def test_a_server_that_does_not_know_the_place_is_read_from_its_own(
    autojump_clock: MockClock,
) -> None:
    """As one whose mailbox began anew: nothing that was taken is taken again."""
    asked: list[str | None] = []

    def say(request: httpx.Request) -> Answer:
        asked.append(request.headers.get("last-event-id"))
        if len(asked) == 1:
            return stream([frame(1), frame(2)])
        if asked[-1] is not None:
            return refused(422, "wrong_cursor")
        return streaming(frame(1), frame(2), frame(3))

    async with virtual_bridge(RoutedServer(stream=say), VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.testing.wait_all_tasks_blocked()
        route = Route(OfferOutcome.EMITTED)
        await make_offer(queue, OCCASION, bridge.clock, route.emit)
        await trio.sleep(60)

        assert asked == [str(START), str(START + 2), None]
        assert queue.record.state is AttachmentState.ATTACHED
        assert numbers(queue, DeliveryState.OFFERED) == [1, 2]
        assert pending(queue) == [3]


@pytest.mark.parametrize("word", ["stream", "progress", "receipts"])
@pytest.mark.parametrize("status", [400, 402, 405, 413, 415, 418, 422])
async def test_a_no_to_one_request_ends_no_lease_and_makes_no_storm(
    autojump_clock: MockClock, status: int, word: str
) -> None:
    def no(_: httpx.Request) -> Answer:
        return refused(status, "rule")

    server = RoutedServer(stream=lambda _: streaming(frame(1)))
    server.scripts[word] = no
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        owed = Receipt(queue.record.attachment_id, MessageId("msg-0"), "processed", 1.0)
        async with queue.turn:
            await queue.commit([SaveForeignReceipt(owed)])
        await trio.sleep(HOUR_S / 4)

        assert queue.record.state is AttachmentState.ATTACHED
        assert bridge.told == type(bridge.told)()
        assert len(server.times(word)) < 2 * HOUR_S / 4 / (reconnect.CAP_S / 2)
        assert pending(queue) == ([] if word == "stream" else [1])


@pytest.mark.parametrize("status", [403, 404, 405, 409, 410])
async def test_a_page_of_something_in_between_is_no_word_of_the_server(
    autojump_clock: MockClock, status: int
) -> None:
    """As a proxy's whose server is just being changed: all goes on behind it."""
    page_of_proxy = Answer(status, {"content-type": "text/html"}, [b"<html>no"])
    ids = {"message_id": "msg-1", "inbox_id": "inbox-1", "conversation_id": "c"}

    def unless(answer: Answer) -> Callable[[httpx.Request], Answer]:
        return lambda _: page_of_proxy if trio.current_time() < 60 else answer

    server = RoutedServer(
        stream=unless(streaming(frame(1))),
        progress=unless(said({"offered_through": 0})),
        send=unless(said({**ids, "sequence": 1})),
    )
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        row = await outgoing.submit(bridge, queue, "hello", target="agent:peer")
        await trio.sleep(150)

        assert queue.record.state is AttachmentState.ATTACHED
        assert pending(queue) == [1]
        sent = queue.submissions[row.submission_id]
        assert sent.state is SubmissionState.ACCEPTED


NONSENSE: list[bytes] = [
    b"event: future\ndata: {}\n\n",
    b"id: 500000002\nevent: message\ndata: null\n\n",
    frame(2).replace(b'"sender":"alice",', b""),
    frame(2).replace(b'"sender":"alice"', b'"sender":null'),
    frame(2).replace(b'"sender":"alice"', b'"sender":["alice"]'),
    frame(2).replace(b"500000002", b"9223372036854775808"),
    b'event: alive\ndata: {"through":9223372036854775808}\n\n',
    b'event: retract\ndata: {"message_ids":"msg-1","reason":"x"}\n\n',
    b'event: receipt\ndata: {"number":true,"message_id":"m","delivery":"x"}\n\n',
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=range(len(NONSENSE)))
async def test_an_event_that_cannot_be_read_is_skipped_once_and_the_next_is_heard(
    autojump_clock: MockClock,
    nonsense: bytes,
) -> None:
    asked: list[int] = []

    def say(request: httpx.Request) -> Answer:
        asked.append(cursor_of(request))
        if len(asked) == 1:
            return stream([frame(1), nonsense, frame(3)])
        return streaming()

    async with virtual_bridge(RoutedServer(stream=say), VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.sleep(60)

        assert pending(queue) == [1, 3]
        assert asked == [0, 3]
        assert bridge.told == type(bridge.told)()


async def test_a_field_that_a_newer_server_adds_changes_nothing(
    autojump_clock: MockClock,
) -> None:
    newer = frame(1).replace(b'"sender"', b'"colour":{"of":[1]},"sender"')
    server = RoutedServer(stream=lambda _: streaming(newer))
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await trio.testing.wait_all_tasks_blocked()

        assert pending(queue) == [1]


# ---- receipts that cannot go out (row 67) ------------------------------------------


async def test_a_receipt_that_cannot_be_sent_is_kept_and_holds_no_offer_up(
    autojump_clock: MockClock,
) -> None:
    def take(_: httpx.Request) -> Answer:
        return BROKEN if trio.current_time() < HOUR_S else said({"recorded": []})

    server = RoutedServer(stream=lambda _: streaming(frame(1)), receipts=take)
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        owed = Receipt(queue.record.attachment_id, MessageId("msg-0"), "processed", 1.0)
        async with queue.turn:
            await queue.commit([SaveForeignReceipt(owed)])
        await trio.sleep(15)
        route = Route(OfferOutcome.EMITTED)
        outcome = await make_offer(queue, OCCASION, bridge.clock, route.emit)

        assert outcome is OfferOutcome.EMITTED
        assert owed in queue.unsent_receipts()
        await trio.sleep(HOUR_S + 60)
        assert queue.unsent_receipts() == []
        assert len(server.times("receipts")) < 2 * HOUR_S / (reconnect.CAP_S / 2)


# ---- a computer that slept (row 70) ------------------------------------------------


async def test_after_a_sleep_every_stream_is_opened_again_at_once_and_once(
    autojump_clock: MockClock,
) -> None:
    server = RoutedServer(stream=lambda _: stream([HANG]))
    clock = VirtualClock()
    async with virtual_bridge(server, clock) as bridge:
        watch_sleep(bridge)
        for number in range(50):
            await attached(bridge, number)
        await trio.sleep(12)
        clock.sleep_computer(8 * HOUR_S)
        await trio.sleep(8)

        again = server.times()[50:]
        assert len(again) == 50
        assert max(again) <= 15 + reconnect.BASE_S
        assert len(set(again)) > 40, "they came in one moment"


async def test_a_stream_that_waits_for_its_turn_is_woken_but_not_below_the_floor(
    autojump_clock: MockClock,
) -> None:
    server = RoutedServer(stream=lambda _: refused(503, "slow", {"Retry-After": "600"}))
    clock = VirtualClock()
    async with virtual_bridge(server, clock) as bridge:
        watch_sleep(bridge)
        await attached(bridge)
        await trio.sleep(11)
        clock.sleep_computer(300)
        await trio.sleep(60)
        assert len(server.times()) == 1
        clock.sleep_computer(8 * HOUR_S)
        await trio.sleep(10)

        assert len(server.times()) == 2


async def test_what_was_sent_before_a_sleep_is_not_fresh_after_it(
    autojump_clock: MockClock,
) -> None:
    answers: list[Answer] = [
        stream([frame(1), 2.0, frame(2), 60.0]),
        stream([HANG]),
    ]
    server = RoutedServer(stream=lambda _: answers.pop(0))
    clock = VirtualClock()
    async with virtual_bridge(server, clock) as bridge:
        watch_sleep(bridge)
        queue = await attached(bridge)
        await trio.sleep(1)
        assert [row.sequence for row in queue.releasable()] == [START + 1]
        clock.sleep_computer(20)
        await trio.sleep(1.5)  # frame(2) lay in the kernel all the while

        assert pending(queue) == [1]
        await trio.sleep(5)
        assert queue.releasable() == []
        assert len(server.times()) == 2


async def test_after_a_sleep_no_token_that_has_ended_is_used(
    autojump_clock: MockClock,
) -> None:
    server = RoutedServer(stream=lambda _: stream([HANG]), token=lambda _: said(GRANT))
    clock, kept = VirtualClock(), Kept()
    kept.tokens = ChildTokens("c", "access-1", "refresh-1", clock.wall_s + HOUR_S)
    async with open_server(ServerAddress("http://bridge"), server) as other:
        credential = ChildCredential(
            other, attachment(1).attachment_id, kept.tokens, kept, clock
        )
        async with virtual_bridge(server, clock, credential) as bridge:
            watch_sleep(bridge)
            await attached(bridge)
            await trio.sleep(12)
            clock.sleep_computer(8 * HOUR_S)
            await trio.sleep(8)

    used = [
        request.headers["authorization"]
        for request in server.requests
        if request.url.path.endswith("stream")
    ]
    assert used == ["Bearer access-1", "Bearer access-2"]
