"""Hooks that were installed twice, say for a project and for all of them.

Owns the memory of what was just heard. Promises that a host which tells us of one
event twice is answered once: else the second word would look like the next event,
and what was offered at the first like lost.
"""

from __future__ import annotations

from bridge.core.records import ProcessKey

TWIN_S = 2.0


class Twins:
    """The events of the last TWIN_S seconds, by process and by what was said."""

    def __init__(self) -> None:
        self._heard: dict[tuple[ProcessKey, int], float] = {}

    def has_heard(self, key: ProcessKey, mark: int, at: float) -> bool:
        """Was this very event told before? It is remembered from `at` on.

        `at` is in seconds of a clock that never goes back.
        """
        recent = {
            told: then for told, then in self._heard.items() if at - then < TWIN_S
        }
        is_twin = (key, mark) in recent
        self._heard = {(key, mark): at} | recent
        return is_twin
