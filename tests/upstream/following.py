"""One stream followed to its end, over a scripted server."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

import trio

from bridge.core.ids import AttachmentId
from bridge.errors import BridgeError
from bridge.log import open_log
from bridge.upstream.api import Caller
from bridge.upstream.clients import ServerAddress, open_server
from bridge.upstream.credentials import FixedToken
from bridge.upstream.stream import StreamPlace, read_stream
from bridge.upstream.stream_events import (
    Arrived,
    StreamEvent,
)
from tests.fakes.clock import FakeClock
from tests.fakes.scripted_server import (
    Chunk,
    ScriptedServer,
    stream,
)

PLACE = StreamPlace(AttachmentId("att-1"), cursor=500_000_001, receipts_after=4)


def frame(number: int, text: str = "hello") -> bytes:
    sequence = 500_000_000 + number
    return (
        f'id: {sequence}\nevent: message\ndata: {{"message_id":"msg-{number}",'
        f'"sequence":{sequence},"inbox_id":"inbox-1","conversation_id":"c",'
        f'"sender":"alice","sender_provider":"codex","reply_address":"inbox-1",'
        f'"message":"{text}","sent_at":"2026-11-29T16:05:29Z"}}\n\n'
    ).encode()


class Followed:
    """What one stream gave, and how it ended."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []
        self.error: BridgeError | None = None
        self.log = StringIO()

    def numbers(self) -> list[int]:
        """Which messages arrived, in order."""
        found = [each for each in self.events if isinstance(each, Arrived)]
        return [each.message.sequence - 500_000_000 for each in found]


async def follow(caller: Caller, place: StreamPlace = PLACE) -> Followed:
    followed = Followed()
    sender, receiver = trio.open_memory_channel[StreamEvent](0)

    async def read() -> None:
        log = open_log(followed.log, caller.clock)
        async with sender:
            try:
                await read_stream(caller, place, sender, log)
            except BridgeError as error:
                followed.error = error

    async with trio.open_nursery() as nursery, receiver:
        nursery.start_soon(read)
        async for event in receiver:
            followed.events.append(event)
    return followed


async def follow_all(contents: Iterable[Iterable[Chunk]]) -> list[Followed]:
    """One stream for each content, without fixtures."""
    followed = []
    transport = ScriptedServer(stream([]))
    async with open_server(ServerAddress("http://bridge"), transport) as server:
        caller = Caller(server, FixedToken("t"), FakeClock())
        for chunks in contents:
            transport.answers = [stream(chunks)]
            followed.append(await follow(caller))
    return followed
