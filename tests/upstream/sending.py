"""A sender at work on a scripted server, and what it is given to send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import trio
import trio.testing

from bridge.core.ids import AgentId, AttachmentId, MessageId, SubmissionId
from bridge.core.records import Receipt, Submission
from bridge.errors import Refused, StorageFull
from bridge.upstream.sender import Sender
from tests.fakes.clock import FakeClock
from tests.fakes.memory_outbox import MemoryOutbox
from tests.fakes.scripted_server import (
    Answer,
    ScriptedServer,
)
from tests.upstream.callers import Callers

ATTACHMENT_ID = AttachmentId("att-1")
ACCEPTED = {
    "message_id": "msg-9",
    "inbox_id": "inbox-9",
    "conversation_id": "c",
    "sequence": 4,
}
FULL = StorageFull("storage_full", "No room.")


def submission(number: int, lane: str = "agent:bob") -> Submission:
    return Submission(
        SubmissionId(f"sub-{number}"),
        ATTACHMENT_ID,
        AgentId("agent-1"),
        lane,
        "hash",
        number,
        body=f"text {number}",
        target=lane,
    )


def receipt(number: int, delivery: str = "admitted") -> Receipt:
    return Receipt(ATTACHMENT_ID, MessageId(f"msg-{number}"), delivery, 1.0)


class Sending:
    """A sender at work on a scripted server."""

    def __init__(self, sender: Sender, server: ScriptedServer) -> None:
        self.sender = sender
        self.server = server
        self.end: Refused | None = None

    async def run(self) -> None:
        self.end = await self.sender.run()

    def sent_ids(self) -> list[str]:
        """The submission ids that were asked, in order."""
        return [
            msgspec.json.decode(each.content)["submission_id"]
            for each in self.server.requests
            if each.url.path.endswith("/send")
        ]


class Place:
    """Starts senders; the virtual time runs along with the fake clock."""

    def __init__(self, calling: Callers, clock: FakeClock) -> None:
        self._calling = calling
        self.clock = clock
        self.outbox = MemoryOutbox(clock)

    @asynccontextmanager
    async def sending(
        self, *answers: Answer | Exception, seconds: float = 0.0
    ) -> AsyncIterator[Sending]:
        """A sender that runs until it is idle, and for `seconds` more."""
        server = ScriptedServer(*answers)
        caller = await self._calling(server)
        made = Sending(Sender(caller, ATTACHMENT_ID, self.outbox), server)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.run)
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(int(seconds * 2)):
                await trio.sleep(0.5)
                self.clock.advance(0.5)
            yield made
            nursery.cancel_scope.cancel()
