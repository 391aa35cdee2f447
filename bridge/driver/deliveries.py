"""The delivery rows of one attachment, found by id and by state.

A hook asks what waits while its host stands still, and thousands of rows may have
been dealt with: they are kept apart by state, so that those cost it nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from bridge.core import quota
from bridge.core.ids import MessageId
from bridge.core.records import Delivery, DeliveryState


class Deliveries(Mapping[MessageId, Delivery]):
    """Rows by message id; `body_bytes` is what their bodies take.

    `on_bytes` is told whenever that changes.
    """

    def __init__(self, rows: Iterable[Delivery] = ()) -> None:
        self.body_bytes = 0
        self.on_bytes: Callable[[int], None] | None = None
        self._rows: dict[MessageId, Delivery] = {}
        self._by_state: defaultdict[DeliveryState, dict[MessageId, Delivery]]
        self._by_state = defaultdict(dict)
        for row in rows:
            self.put(row)

    def __getitem__(self, message_id: MessageId) -> Delivery:
        return self._rows[message_id]

    def __iter__(self) -> Iterator[MessageId]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: Delivery) -> None:
        """The row in the place of the one that was there."""
        freed = self._drop(row.message_id)
        self._rows[row.message_id] = row
        self._by_state[row.state][row.message_id] = row
        self._grow(quota.body_bytes([row]) - freed)

    def forget(self, message_id: MessageId) -> None:
        """No row any more; nothing when there is none."""
        self._grow(-self._drop(message_id))

    def _drop(self, message_id: MessageId) -> int:
        row = self._rows.pop(message_id, None)
        if row is None:
            return 0
        del self._by_state[row.state][message_id]
        return quota.body_bytes([row])

    def _grow(self, size: int) -> None:
        self.body_bytes += size
        if size and self.on_bytes is not None:
            self.on_bytes(self.body_bytes)

    def in_state(self, *states: DeliveryState) -> list[Delivery]:
        """Rows in these states, oldest first."""
        rows = [row for state in states for row in self._in(state)]
        return sorted(rows, key=lambda row: row.sequence)

    def first_in_state(self, *states: DeliveryState) -> int | None:
        """The lowest sequence of a row in these states; None when there is none."""
        rows = (row for state in states for row in self._in(state))
        return min((row.sequence for row in rows), default=None)

    def _in(self, state: DeliveryState) -> Iterable[Delivery]:
        # Looking makes no room for what is not there: there may be a thousand of us.
        found = self._by_state.get(state)
        return () if found is None else found.values()
