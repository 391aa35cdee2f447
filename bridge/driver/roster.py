"""Every attachment of this bridge, found by session, by process or by name.

Owns the set of queues, and with it who holds how many bytes. Promises that one
exact session has at most one live attachment, and that a name is looked up folded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bridge.core.ids import AgentId, AttachmentId, fold_name
from bridge.core.quota import Holdings
from bridge.core.records import AttachmentState, ProcessKey
from bridge.driver.queue import AttachmentQueue

_PRESENT = (AttachmentState.ATTACHED, AttachmentState.HELD)
_KNOWN = (*_PRESENT, AttachmentState.OFFLINE)


class Roster:
    """See the module."""

    def __init__(self) -> None:
        self._queues: dict[AttachmentId, AttachmentQueue] = {}
        # Made when it is asked for: a host waits while a hook looks, and a thousand
        # attachments must not make it wait longer.
        self._by_process: dict[ProcessKey, list[AttachmentQueue]] | None = None
        self.holdings = Holdings()

    def add(self, queue: AttachmentQueue) -> None:
        """From now on it is found."""
        attachment_id = queue.record.attachment_id
        self._queues[attachment_id] = queue
        self.holdings.put(attachment_id, queue.deliveries.body_bytes)
        queue.deliveries.on_bytes = partial(self.holdings.put, attachment_id)
        queue.on_move = self._forget_places
        self._forget_places()

    def remove(self, queue: AttachmentQueue) -> None:
        """From now on it is not."""
        self._queues.pop(queue.record.attachment_id, None)
        self.holdings.remove(queue.record.attachment_id)
        queue.deliveries.on_bytes = None
        queue.on_move = None
        self._forget_places()

    def __iter__(self) -> Iterator[AttachmentQueue]:
        return iter(list(self._queues.values()))

    def __len__(self) -> int:
        return len(self._queues)

    def get(self, attachment_id: AttachmentId) -> AttachmentQueue | None:
        """By attachment id."""
        return self._queues.get(attachment_id)

    def present(
        self, provider: str, session_id: str, key: ProcessKey
    ) -> AttachmentQueue | None:
        """The attached (or held) queue of exactly this session and process."""
        found = [
            queue
            for queue in self.of_process(key)
            if queue.record.provider == provider
            and queue.record.session_id == session_id
        ]
        return max(found, key=lambda queue: queue.record.created_at, default=None)

    def known(self, provider: str, session_id: str) -> AttachmentQueue | None:
        """The identity this session has or had: present, or kept offline."""
        found = self.of_session(provider, session_id)
        return max(found, key=lambda queue: queue.record.created_at, default=None)

    def of_session(self, provider: str, session_id: str) -> list[AttachmentQueue]:
        """Every identity this session has: present, or kept offline."""
        return [
            queue
            for queue in self
            if queue.record.provider == provider
            and queue.record.session_id == session_id
            and queue.record.state in _KNOWN
        ]

    def of_process(self, key: ProcessKey) -> list[AttachmentQueue]:
        """Everything present in this process."""
        if self._by_process is None:
            self._by_process = {}
            for queue in self:
                self._by_process.setdefault(queue.record.process_key, []).append(queue)
        found = self._by_process.get(key, [])
        return [queue for queue in found if queue.record.state in _PRESENT]

    def named(self, name: str) -> AttachmentQueue | None:
        """By name: present, then offline, then what is over; of these the newest."""
        folded = fold_name(name)
        found = [q for q in self if fold_name(q.record.name) == folded]
        return max(found, key=_nearness, default=None)

    def of_agent(self, agent_id: AgentId) -> list[AttachmentQueue]:
        """Every queue of one agent id, oldest first."""
        found = [queue for queue in self if queue.record.agent_id == agent_id]
        return sorted(found, key=lambda queue: queue.record.created_at)

    def _forget_places(self) -> None:
        """A queue came, went, or is in another process now."""
        self._by_process = None


def _nearness(queue: AttachmentQueue) -> tuple[bool, bool, float]:
    record = queue.record
    return record.state in _PRESENT, record.state in _KNOWN, record.created_at
