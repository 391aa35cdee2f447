"""A Claude Code process as its inbox shows it: it reads lines, and may answer.

Owns a real Unix socket and a registration in a home of its own. What it answers is
what 2.1.332 was seen to write to a reply address.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import trio

from bridge.core.caller import ProcessFacts
from bridge.providers import process

SESSION = "cf8cf2c3-0000-4000-8000-000000000001"
TOKEN = "0123456789abcdef0123456789abcdef"


class InboxHost:
    """`answer` is the status that it gives a text; empty gives none."""

    def __init__(self, folder: Path, answer: str) -> None:
        self.home = folder / "home"
        self.socket_path = folder / "socks" / f"{os.getpid()}.sock"
        self.answer = answer
        self.lines: list[dict[str, Any]] = []
        self.connections = 0
        self.got_text = trio.Event()
        self.sessions = self.home / ".claude" / "sessions"
        self.sessions.mkdir(parents=True, mode=0o700)
        self.socket_path.parent.mkdir(mode=0o700)
        self.register()

    @property
    def environment(self) -> dict[str, str]:
        """What its process was started with."""
        return {"HOME": str(self.home)}

    @property
    def facts(self) -> ProcessFacts:
        """Its process: the test's own."""
        facts = process.facts_of(os.getpid())
        assert facts is not None
        return facts

    def register(self, **changes: object) -> None:
        """Write the registration anew, and the key beside it."""
        facts = self.facts
        said = {
            "pid": facts.pid,
            "sessionId": SESSION,
            "procStart": str(facts.start),
            "version": "2.1.332",
            "peerProtocol": 1,
            "messagingSocketPath": str(self.socket_path),
            "status": "idle",
        }
        file = self.sessions / f"{facts.pid}.json"
        file.write_text(json.dumps(said | changes))
        file.chmod(0o644)
        self.key_file.write_text(
            json.dumps({"peerToken": TOKEN, "procStart": str(facts.start)})
        )
        self.key_file.chmod(0o600)

    @property
    def key_file(self) -> Path:
        """Where the token lies."""
        mark = hashlib.sha256(os.fsencode(self.socket_path)).hexdigest()
        return self.sessions / f"{os.getpid()}.{mark}.key"

    @property
    def texts(self) -> list[dict[str, Any]]:
        """Each text that was written to it."""
        return [line for line in self.lines if line.get("type") == "user"]

    async def serve(self, stream: trio.SocketStream) -> None:
        """Read one connection to its end."""
        self.connections += 1
        rest = b""
        async with stream:
            async for chunk in stream:
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    await self._take(json.loads(line))

    async def _take(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        if line["type"] == "user":
            if self.answer:
                await self.say(line, self.answer)
            self.got_text.set()

    async def say(self, line: dict[str, Any], status: str, **more: object) -> None:
        """What became of this text, said to its reply address."""
        notice = {
            "type": "control",
            "action": "peer_message_status",
            "status": status,
            "reason": "as its person wishes",
            "from": f"uds:{self.socket_path}",
            "orig_msg_id": line["msg_id"],
            **more,
        }
        await say_to(line["from"], json.dumps(notice).encode() + b"\n")


async def say_to(address: str, words: bytes) -> None:
    """Write this to a reply address, on a connection of its own."""
    place = unquote(address.removeprefix("uds:"))
    stream = await trio.open_unix_socket(place)
    async with stream:
        await stream.send_all(words)


@asynccontextmanager
async def inbox_host(folder: Path, answer: str = "") -> AsyncIterator[InboxHost]:
    """A host that listens until the block ends."""
    host = InboxHost(folder, answer)
    listening = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    await listening.bind(str(host.socket_path))
    listening.listen()
    async with trio.open_nursery() as nursery:
        listeners = [trio.SocketListener(listening)]
        nursery.start_soon(trio.serve_listeners, host.serve, listeners)
        yield host
        nursery.cancel_scope.cancel()
