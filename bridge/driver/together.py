"""Events of a stream, and which of them are taken in together.

Promises the order in which they came, nothing that waits for more, and that
messages which are there at the same time come as one page, so that a long backlog
costs a commit for each page and not for each message.
"""

from __future__ import annotations

from typing import Self

import trio

from bridge.upstream.stream_events import Arrived, StreamEvent

# What a server replays at once.
PAGE = 20


class Together:
    """Iterates over pages: one event, or messages alone that belong together.

    The messages of a page have rising places and ids of their own; what has not
    begins another page.
    """

    def __init__(self, events: trio.MemoryReceiveChannel[StreamEvent]) -> None:
        self._events = events
        self._next: StreamEvent | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[StreamEvent]:
        page = [await self._first()]
        while len(page) < PAGE:
            following = self._following()
            if following is None:
                break
            if not _belongs(page, following):
                self._next = following
                break
            page.append(following)
        return page

    async def _first(self) -> StreamEvent:
        if self._next is not None:
            following, self._next = self._next, None
            return following
        try:
            return await self._events.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    def _following(self) -> StreamEvent | None:
        try:
            return self._events.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel):
            return None


def _belongs(page: list[StreamEvent], following: StreamEvent) -> bool:
    last = page[-1]
    if not isinstance(last, Arrived) or not isinstance(following, Arrived):
        return False
    ids = [each.message.message_id for each in page if isinstance(each, Arrived)]
    is_later = following.message.sequence > last.message.sequence
    return is_later and following.message.message_id not in ids
