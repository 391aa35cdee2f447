"""What an agent says while the server is slow or gone: kept, bounded, in order."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import httpx
import msgspec
import pytest
import trio
from trio.testing import MockClock

from bridge.core.outbox import COUNT_LIMIT
from bridge.core.records import SubmissionState
from bridge.driver import outgoing, verbs
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import Refused
from tests.driver.virtual import (
    HOUR_S,
    VirtualClock,
    attached,
    attachment,
    virtual_bridge,
)
from tests.fakes.routed_server import RoutedServer
from tests.fakes.scripted_server import Answer, refused, said, stream

LANES = 5
TRIES = 2_000
DOWN_S = 60.0


async def say(bridge: Bridge, queue: AttachmentQueue, number: int) -> str:
    """One message to one of the lanes: queued, or why not."""
    try:
        row = await outgoing.submit(
            bridge,
            queue,
            f"{number} " + "x" * 100,
            target=f"agent:peer-{number % LANES}",
            submission_id=f"sub-{number}",
        )
    except Refused as error:
        return error.code
    return row.state.value


async def test_of_two_thousand_messages_a_thousand_find_room_and_go_out_in_order(
    autojump_clock: MockClock,
) -> None:
    sent: list[int] = []

    def stands(_: httpx.Request) -> Answer:
        is_down = trio.current_time() < DOWN_S
        return refused(503, "slow") if is_down else stream([HOUR_S])

    def take(request: httpx.Request) -> Answer:
        if trio.current_time() < DOWN_S:
            return refused(503, "slow")
        body = msgspec.json.decode(request.content)
        sent.append(int(body["submission_id"].removeprefix("sub-")))
        ids = {"message_id": f"msg-{len(sent)}", "inbox_id": "inbox-1"}
        return said({**ids, "conversation_id": "c", "sequence": len(sent)})

    async with virtual_bridge(
        RoutedServer(stream=stands, send=take), VirtualClock()
    ) as bridge:
        queue = await attached(bridge)
        await trio.sleep(1)
        told = Counter([await say(bridge, queue, n) for n in range(COUNT_LIMIT)])
        tracemalloc.start()
        for number in range(COUNT_LIMIT, TRIES):
            told[await say(bridge, queue, number)] += 1
        _, grown = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert told["outbox_full"] == TRIES - COUNT_LIMIT
        assert len(queue.submissions) == COUNT_LIMIT
        assert grown < 1024 * 1024, f"{grown} bytes for what was refused"
        assert sent == []
        await trio.sleep(DOWN_S + 60)

        states = Counter(row.state for row in queue.submissions.values())
        assert states == {SubmissionState.ACCEPTED: COUNT_LIMIT}
        assert sorted(sent) == list(range(COUNT_LIMIT))
        for lane in range(LANES):
            assert [n for n in sent if n % LANES == lane] == list(
                range(lane, COUNT_LIMIT, LANES)
            )


async def test_room_comes_back_as_the_server_takes_what_waits(
    autojump_clock: MockClock,
) -> None:
    server = RoutedServer(stream=lambda _: stream([HOUR_S]))
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        queue.stream_trouble = "slow"
        server.scripts["send"] = lambda _: refused(503, "slow", {"Retry-After": "60"})
        for number in range(COUNT_LIMIT):
            assert await say(bridge, queue, number) != "outbox_full"
        assert await say(bridge, queue, TRIES) == "outbox_full"

        ids = {"message_id": "msg-1", "inbox_id": "inbox-1", "conversation_id": "c"}
        server.scripts["send"] = lambda _: said({**ids, "sequence": 1})
        await trio.sleep(600)
        queue.stream_trouble = ""

        assert await say(bridge, queue, TRIES) == "accepted"


@pytest.mark.parametrize("text", ["", "   ", "x" * 20_001, "half \ud83d of it"])
async def test_what_is_no_message_is_refused_before_it_is_kept(text: str) -> None:
    async with virtual_bridge(RoutedServer(), VirtualClock()) as bridge:
        queue = await attached(bridge)
        with pytest.raises(Refused):
            await outgoing.submit(bridge, queue, text, target="agent:peer")

        assert queue.submissions == {}


@pytest.mark.parametrize("text", ["", " ", "x" * 513, "a\nb", "a\rb"])
async def test_a_purpose_that_is_no_line_of_512_is_refused_before_anybody_is_asked(
    text: str,
) -> None:
    server = RoutedServer()
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = bridge.new_queue(attachment())
        with pytest.raises(Refused):
            await verbs.set_purpose(bridge, queue, text)

        assert server.asked == []


async def test_a_purpose_of_512_characters_is_kept_as_the_server_keeps_it() -> None:
    server = RoutedServer(purpose=lambda _: said({"purpose": "x" * 512}))
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = bridge.new_queue(attachment())
        await verbs.set_purpose(bridge, queue, "x" * 512)

        assert queue.record.purpose == "x" * 512
