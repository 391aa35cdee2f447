"""What every fault test stands on."""

from __future__ import annotations

from tests.faults.whole.fixtures import codex
from tests.journeys.conftest import built_ask, computer

__all__ = ["built_ask", "codex", "computer"]
