"""A service manager's end of the notify protocol."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Manager:
    """Hears what a service says at `address`."""

    def __init__(self, address: str, receiving: socket.socket) -> None:
        self.address = address
        self._receiving = receiving

    def words(self) -> list[bytes]:
        """What came since the last look."""
        found = []
        try:
            while True:
                found.append(self._receiving.recv(4096))
        except BlockingIOError:
            return found


@contextmanager
def manager() -> Iterator[Manager]:
    """One that listens until the end of the test."""
    with (
        tempfile.TemporaryDirectory(prefix="aw-notify-", dir="/tmp") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving,
    ):
        address = str(Path(folder) / "notify")
        receiving.bind(address)
        receiving.setblocking(False)
        yield Manager(address, receiving)
