"""Texts as agents and people see them, kept byte for byte in golden/NAME.txt.

AGENTWORKS_WRITE_GOLDEN=1 writes the files instead of reading them; look at the
difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def golden(name: str, text: str) -> str:
    """What golden/NAME.txt holds; in writing mode, the text just written there."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("AGENTWORKS_WRITE_GOLDEN") == "1":
        path.write_bytes(text.encode())
    return path.read_bytes().decode()
