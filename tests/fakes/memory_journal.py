"""A journal in memory: no thread and no file, so that time may be virtual.

What it holds is gone with the test; nothing that a real one promises of the disk
is shown by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.core.effects import Save, SaveDelivery
from bridge.core.ids import AgentId, MessageId, SubmissionId
from bridge.core.records import Delivery, DeliveryState, Submission
from bridge.store.journal import Journal

_NOT_SHOWN = (DeliveryState.PENDING, DeliveryState.WITHHELD)


class MemoryJournal(Journal):
    """The journal of one agent; what a running daemon asks of it, and no more."""

    def __init__(self) -> None:
        self.rows: dict[MessageId, Delivery] = {}

    async def commit(self, saves: Sequence[Save]) -> None:
        """Keep the rows of messages."""
        for save in saves:
            if isinstance(save, SaveDelivery):
                self.rows[save.delivery.message_id] = save.delivery

    async def offered_among(
        self, agent_id: AgentId, message_ids: Sequence[MessageId]
    ) -> frozenset[MessageId]:
        """See Journal."""
        kept = [self.rows[each] for each in message_ids if each in self.rows]
        shown = [row for row in kept if row.state not in _NOT_SHOWN]
        return frozenset(row.message_id for row in shown)

    async def submission(
        self, agent_id: AgentId, submission_id: SubmissionId
    ) -> Submission | None:
        """None: a queue knows its own."""
        return None

    async def checkpoint(self) -> None:
        """There is no log to empty."""
