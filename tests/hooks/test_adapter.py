"""Our extensions' way to the bridge: nothing out of turn, and nothing that stays."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio

from tests.hooks.conftest import HOOKS
from tests.hooks.runner import output, start

LIMIT_S = 15  # for node, on a loaded computer
IMPORT = 'import { Bridge, Route } from "../plugins/adapter.mjs";'


class Place:
    """A state folder with the adapter, and a bridge of ours at its socket."""

    def __init__(self, folder: Path) -> None:
        for name in ("run", "plugins", "scripts"):
            (folder / name).mkdir(mode=0o700)
        shutil.copy(HOOKS / "adapter.mjs", folder / "plugins")
        self.script = folder / "scripts" / "program.mjs"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(folder / "run" / "bridge.sock"))
        listening.listen()
        wrapped = trio.socket.from_stdlib_socket(listening)
        self.listener = trio.SocketListener(wrapped)

    @asynccontextmanager
    async def running(self, script: str) -> AsyncIterator[trio.Process]:
        """A program that has the adapter; it must have ended by itself."""
        node = shutil.which("node")
        if node is None:
            pytest.skip("there is no node here")
        self.script.write_text(f"{IMPORT}\n{script}\n")
        program = await start(node, self.script)
        assert program.stdin is not None
        assert program.stdout is not None
        try:
            with trio.fail_after(LIMIT_S):
                yield program
                await program.stdin.aclose()
                assert await program.wait() == 0
        finally:
            program.kill()
            with trio.CancelScope(shield=True):
                await program.wait()
                await program.stdin.aclose()
                await program.stdout.aclose()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    with tempfile.TemporaryDirectory(prefix="aw #%3F'") as folder:
        made = Place(Path(folder).resolve())
        async with made.listener:
            yield made


async def lines(stream: trio.SocketStream, count: int) -> list[bytes]:
    said = b""
    while said.count(b"\n") < count:
        chunk = await stream.receive_some()
        assert chunk, said
        said += chunk
    return said.splitlines()


async def test_a_chat_that_is_busy_at_once_says_so_after_the_header(
    place: Place,
) -> None:
    script = (
        'const route = new Route(new Bridge("pi"), "s1", async () => {});'
        "route.idle(false); process.stdin.resume();"
        'process.stdin.on("end", () => route.close());'
    )
    async with place.running(script), await place.listener.accept() as stream:
        assert await lines(stream, 2) == [b"AW1 route pi s1 0", b'{"idle":false}']


async def test_a_bridge_that_stands_still_keeps_no_program_alive(place: Place) -> None:
    script = (
        'const left = await new Bridge("pi").ask("prompt", { session_id: "s1" });'
        "console.log(left);"
    )
    async with (
        place.running(script) as program,
        await place.listener.accept() as stream,
    ):
        assert (await lines(stream, 2))[-1].endswith(b"AW1 unprinted 0")
        assert b"did not answer in time" in await output(program)
        assert await program.wait() == 0


async def test_garbage_from_the_bridge_is_not_collected(place: Place) -> None:
    script = (
        'await new Bridge("pi").ask("prompt", { session_id: "s1" });'
        "process.stdin.resume();"
        'process.stdin.on("end", () => process.exit('
        "process.memoryUsage().arrayBuffers > 16 << 20 ? 1 : 0));"
    )
    async with place.running(script), await place.listener.accept() as stream:
        with suppress(trio.BrokenResourceError):  # it may close, which is as good
            for _ in range(48):
                await stream.send_all(b"x" * (1 << 20))
