"""A scripted Codex app-server: a real socket and real frames, recorded answers.

Owns what it is told to answer to each method. Promises that every request is kept
as it came, in order, also the one that ends the connection.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Ping, Request, TextMessage

from tests.fakes.unix_listener import listening

_RECORDED = Path(__file__).parents[1] / "routes" / "fixtures" / "codex_app_server.json"
RECORDED: Mapping[str, Any] = json.loads(_RECORDED.read_text())
THREAD_ID: str = RECORDED["thread_idle"]["thread"]["id"]

SILENCE = "silence"
"""Never answer."""
HANG_UP = "hang up"
"""End the connection in place of an answer."""


class Fault(dict[str, Any]):
    """An answer that is JSON-RPC's error, as recorded."""


class Text(str):
    """An answer that is written as it stands, whatever it is."""


class InTurn(list[object]):
    """Answers that are given one after the other; the last one stays."""


class ScriptedCodex:
    """Its `answers` by method."""

    def __init__(self, **answers: object) -> None:
        self.answers: dict[str, object] = {
            "initialize": RECORDED["initialize"],
            "thread/read": RECORDED["thread_idle"],
            "turn/start": RECORDED["turn_started"],
            "thread/items/list": RECORDED["items"],
            "thread/queue/add": RECORDED["queued"],
        }
        for word, answer in answers.items():
            self.answers[word.replace("__", "/")] = answer
        self.asked: list[dict[str, Any]] = []
        self.path = ""

    def params(self, method: str) -> list[dict[str, Any]]:
        """What was asked of one method, in order."""
        return [each["params"] for each in self.asked if each["method"] == method]

    @property
    def methods(self) -> list[str]:
        """Every request and note, in order."""
        return [each["method"] for each in self.asked]

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer one connection until it ends."""
        frames = WSConnection(ConnectionType.SERVER)
        while received := await stream.receive_some(65536):
            frames.receive_data(received)
            text = ""
            for event in frames.events():
                if isinstance(event, Request):
                    await stream.send_all(frames.send(AcceptConnection()))
                    await stream.send_all(frames.send(Ping(payload=b"are you there")))
                elif isinstance(event, TextMessage):
                    text += event.data
                    if event.message_finished and not await self._answer(
                        stream, frames, text
                    ):
                        return
                    text = "" if event.message_finished else text

    async def _answer(
        self, stream: trio.SocketStream, frames: WSConnection, text: str
    ) -> bool:
        said = json.loads(text)
        self.asked.append(said)
        if "id" not in said:
            return True
        answer = self._next(said["method"])
        if answer is SILENCE:
            return True
        if answer is HANG_UP:
            return False
        for each in (json.dumps(RECORDED["status_changed"]), _reply(said, answer)):
            await stream.send_all(frames.send(TextMessage(data=each)))
        return True

    def _next(self, method: str) -> object:
        answer = self.answers[method]
        if isinstance(answer, InTurn):
            return answer.pop(0) if len(answer) > 1 else answer[0]
        return answer


def _reply(said: dict[str, Any], answer: object) -> str:
    if isinstance(answer, Text):
        return answer
    kind = "error" if isinstance(answer, Fault) else "result"
    return json.dumps({"id": said["id"], kind: answer})


@asynccontextmanager
async def codex_server(**answers: object) -> AsyncIterator[ScriptedCodex]:
    """One that listens; `turn__start=...` answers turn/start."""
    server = ScriptedCodex(**answers)
    async with listening(server.serve) as path:
        server.path = path
        yield server
