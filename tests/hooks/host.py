"""A coding agent's program, as far as its MCP child can tell."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.hooks.runner import start

INITIALIZE = (
    b'{"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"host","version":"1"}},'
    b'"jsonrpc":"2.0","id":0}'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
LIST_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def handshake(version: str = "2025-11-25") -> bytes:
    """What a bridge answers to INITIALIZE."""
    return b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"%b"}}' % (
        version.encode()
    )


def request(number: object, method: str = "tools/call") -> bytes:
    """One request's line."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {}}
    return json.dumps(message).encode()


def answer(number: object, text: str = "done") -> bytes:
    """One answer's line."""
    message = {"jsonrpc": "2.0", "id": number, "result": {"text": text}}
    return json.dumps(message).encode()


class Host:
    """One running MCP child, and the lines that go over its stdio."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.buffer = b""

    async def say(self, *lines: bytes) -> None:
        """Send lines in one piece."""
        await self.stdin.send_all(b"".join(line + b"\n" for line in lines))

    async def hear_line(self) -> bytes:
        """The next line of the child, as it came."""
        while b"\n" not in self.buffer:
            chunk = await self.stdout.receive_some(1 << 20)
            assert chunk, f"the child ended; last: {self.buffer!r}"
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    async def hear(self) -> Any:
        """The next message of the child."""
        return json.loads(await self.hear_line())

    async def shake_hands(self) -> Any:
        """The host's side of the handshake; the answer."""
        await self.say(INITIALIZE)
        said = await self.hear()
        await self.say(INITIALIZED)
        return said


@asynccontextmanager
async def host_of(pipe: Path, *words: str) -> AsyncIterator[Host]:
    """A host with the child started; leaving closes stdin and waits for its end."""
    process = await start(pipe, *(words or ("mcp", "claude")))
    host = Host(process)
    try:
        yield host
    finally:
        await host.stdin.aclose()
        with trio.move_on_after(3) as patience:
            await process.wait()
        if patience.cancelled_caught:
            process.kill()
            await process.wait()
        await host.stdout.aclose()
    assert not patience.cancelled_caught, "the child outlived its stdin"
