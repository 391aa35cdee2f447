"""The line passes every byte on as it was, until it is broken on purpose."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trio

from tests.soak.cutting import Cutter

WAIT_S = 5.0


@asynccontextmanager
async def echo_behind(folder: Path) -> AsyncIterator[tuple[Cutter, trio.SocketStream]]:
    """A line to a server that says what it hears, and one connection over it."""
    far, near = folder / "far.sock", folder / "near.sock"
    cutter = Cutter(near, far)
    socket = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    await socket.bind(str(far))
    socket.listen()

    async def echo(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            async for chunk in stream:
                await stream.send_all(chunk)

    async with trio.open_nursery() as nursery:
        listener = trio.SocketListener(socket)
        nursery.start_soon(trio.serve_listeners, echo, [listener])
        await nursery.start(cutter.serve)
        with trio.fail_after(WAIT_S):
            async with await trio.open_unix_socket(str(near)) as line:
                yield cutter, line
        nursery.cancel_scope.cancel()


async def told(line: trio.SocketStream) -> bytes:
    """What comes next; empty at the end, however it ended."""
    try:
        return bytes(await line.receive_some())
    except trio.BrokenResourceError:
        return b""


async def test_bytes_pass_as_they_are(tmp_path: Path) -> None:
    async with echo_behind(tmp_path) as (_, line):
        await line.send_all(b"a frame")

        assert await told(line) == b"a frame"


async def test_a_cut_ends_the_line_at_once(tmp_path: Path) -> None:
    async with echo_behind(tmp_path) as (cutter, line):
        await line.send_all(b"a frame")
        await told(line)
        cutter.cut(cutter.wires)

        assert await told(line) == b""
        assert cutter.wires == []


async def test_a_tear_ends_it_in_the_middle_of_a_frame(tmp_path: Path) -> None:
    async with echo_behind(tmp_path) as (cutter, line):
        await line.send_all(b"a frame")
        await told(line)
        cutter.tear(cutter.wires)
        await line.send_all(b"123456")

        assert await told(line) == b""


async def test_while_it_refuses_nobody_gets_through(tmp_path: Path) -> None:
    async with echo_behind(tmp_path) as (cutter, _):
        cutter.refuses = True
        async with await trio.open_unix_socket(str(tmp_path / "near.sock")) as late:
            assert await told(late) == b""
