"""The line between the bridge and its server, and how it is broken.

Owns a socket that passes bytes on to another one. Promises that what it passes
on is never changed, only delayed, stopped or cut, in the middle of a frame too.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import trio

_CHUNK = 65_536


class Wire:
    """One connection, both ways."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.is_torn = False  # the next bytes are the last, and not all of them


class Cutter:
    """See the module; listens at `near` for what is served at `far`."""

    def __init__(self, near: Path, far: Path) -> None:
        self._near = near
        self._far = far
        self._wires: set[Wire] = set()
        self._is_open = trio.Event()
        self._is_open.set()
        self.delay_s = 0.0
        self.refuses = False
        self.cuts = 0

    @property
    def wires(self) -> Sequence[Wire]:
        """What is connected now, in no order that follows from the seed."""
        return list(self._wires)

    def cut(self, wires: Sequence[Wire]) -> None:
        """End these connections now."""
        for wire in wires:
            self.cuts += 1
            wire.scope.cancel()

    def tear(self, wires: Sequence[Wire]) -> None:
        """End each with its next bytes, half of which still pass."""
        for wire in wires:
            self.cuts += 1
            wire.is_torn = True

    async def silence(self, seconds: float) -> None:
        """Nothing passes for so long; nothing is cut."""
        self._is_open = trio.Event()
        try:
            await trio.sleep(seconds)
        finally:
            self._is_open.set()

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Until cancelled."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(self._near))
        os.chmod(self._near, 0o600)
        listening.listen(256)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
        task_status.started()
        await trio.serve_listeners(self._pass_on, [listener])

    async def _pass_on(self, near: trio.SocketStream) -> None:
        wire = Wire()
        self._wires.add(wire)
        try:
            with wire.scope, suppress(OSError, trio.BrokenResourceError):
                await self._joined(wire, near)
        finally:
            self._wires.discard(wire)
            await trio.aclose_forcefully(near)

    async def _joined(self, wire: Wire, near: trio.SocketStream) -> None:
        if self.refuses:
            return
        far = await trio.open_unix_socket(str(self._far))
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pump, wire, near, far)
                nursery.start_soon(self._pump, wire, far, near)
        finally:
            await trio.aclose_forcefully(far)

    async def _pump(
        self, wire: Wire, source: trio.SocketStream, sink: trio.SocketStream
    ) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while chunk := await source.receive_some(_CHUNK):
                await self._is_open.wait()
                if self.delay_s:
                    await trio.sleep(self.delay_s)
                if wire.is_torn:
                    await sink.send_all(chunk[: len(chunk) // 2])
                    break
                await sink.send_all(chunk)
        wire.scope.cancel()
