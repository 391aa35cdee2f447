"""A journal on a disk that is full when a test says so."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.core.effects import Save
from bridge.errors import StorageFull
from bridge.store.journal import Journal


class FullJournal(Journal):
    """Saves only while `has_room`; reads always work."""

    has_room = True

    async def commit(self, saves: Sequence[Save]) -> None:
        """See Journal; raises StorageFull without room."""
        if not self.has_room:
            raise StorageFull("storage_full", "There is no room to save.")
        await super().commit(saves)
