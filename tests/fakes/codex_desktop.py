"""A double of Codex's desktop app, for its coordination socket alone.

Built from the framing in Codex's published source and from what independent
clients of the app show alike; it was never compared with the app itself. Promises
what they say of it: answers between other clients' traffic, in pieces, by the
client that owns the chat, and no untrusted content while a turn runs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from bridge.routes.codex_desktop import BUSY
from tests.fakes.unix_listener import listening

SILENCE = "silence"
HANG_UP = "hang up"
OWNER = "window-1"


class ScriptedDesktop:
    """`answers` by method: what differs from a yes, or SILENCE, or HANG_UP."""

    def __init__(self, **answers: object) -> None:
        self.answers: dict[str, object] = {
            word.replace("_", "-"): answer for word, answer in answers.items()
        }
        self.heard: list[dict[str, Any]] = []
        self.is_busy = False
        self.path = ""

    def requests(self, method: str) -> list[dict[str, Any]]:
        """The requests of one method, in order."""
        return [each for each in self.heard if each.get("method") == method]

    async def serve(self, stream: trio.SocketStream) -> None:
        """Speak with one client until it leaves."""
        received = b""
        while more := await stream.receive_some():
            received += more
            while len(received) >= 4 and len(received) >= 4 + _length(received):
                end = 4 + _length(received)
                said, received = json.loads(received[4:end]), received[end:]
                self.heard.append(said)
                if said["type"] == "request" and not await self._reply(stream, said):
                    return

    async def _reply(self, stream: trio.SocketStream, said: dict[str, Any]) -> bool:
        answer = self.answers.get(said["method"], {})
        if answer in (SILENCE, HANG_UP):
            return answer is SILENCE
        response = self._response(said)
        if isinstance(answer, Mapping):
            response |= answer
        raw = answer if isinstance(answer, bytes) else framed(response)
        for each in (*(framed(each) for each in _OTHERS), raw):
            await stream.send_all(each[:3])
            await stream.send_all(each[3:])
        return True

    def _response(self, said: dict[str, Any]) -> dict[str, Any]:
        yes = {
            "type": "response",
            "requestId": said["requestId"],
            "resultType": "success",
            "method": said["method"],
        }
        match said["method"]:
            case "initialize":
                return yes | {"result": {"clientId": "client-7"}}
            case "thread-owner-discovery":
                result = {"supportsUntrustedAppInput": True}
                return yes | {"handledByClientId": OWNER, "result": result}
            case "thread-follower-start-turn" if self.is_busy:
                return yes | {"resultType": "error", "error": BUSY}
            case "thread-follower-start-turn":
                started = {"result": {"turn": {"id": "turn-1", "status": "inProgress"}}}
                return yes | {"handledByClientId": OWNER, "result": started}
        return yes | {"resultType": "error", "error": "no-client-found"}


_OTHERS = (
    {"type": "broadcast", "method": "client-status-changed", "params": {}},
    {"type": "client-discovery-request", "requestId": "theirs", "request": {}},
    {"type": "response", "requestId": "another", "resultType": "error", "error": "no"},
)


def framed(message: object) -> bytes:
    """One message as it goes over the socket."""
    body = json.dumps(message).encode()
    return struct.pack("<I", len(body)) + body


def _length(received: bytes) -> int:
    return int(struct.unpack_from("<I", received)[0])


@asynccontextmanager
async def desktop(**answers: object) -> AsyncIterator[ScriptedDesktop]:
    """One that listens; `thread_owner_discovery={...}` changes that answer."""
    app = ScriptedDesktop(**answers)
    async with listening(app.serve, "ipc.sock") as path:
        app.path = path
        yield app
