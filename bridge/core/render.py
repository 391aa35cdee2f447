"""What agents and people see, byte for byte; message text is data.

Promises that no body can close its fence, forge a header or drive a terminal.
"""

from __future__ import annotations

from msgspec import Struct


class Print(Struct, frozen=True):
    """What a hook client is to print, and its exit code."""

    exit: int = 0
    stream: str = "stdout"
    text: bytes = b""
