"""A double of agy's local service, built from published facts.

Nobody here has seen the real one: it needs an account. It takes the one call that
others report to send (fixtures/agy/ls_send_request.json) with the right token, and
answers as it is told.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.fakes.tcp_server import End, TcpServer, document, tcp_server
from tests.providers.captured import captured

TOKEN = "a-secret-of-the-process"
SHAPE = captured("agy/ls_send_request")
PATH = "/" + SHAPE["url"].partition("://")[2].partition("/")[2]


class AgyService:
    """What it was sent, and what it says to the right call."""

    def __init__(self, answer: Sequence[bytes | End]) -> None:
        self.answer = answer
        self.server: TcpServer
        self.texts: list[str] = []
        self.bodies: list[dict[str, Any]] = []

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return self.server.port

    def hear(self, request: bytes) -> Sequence[bytes | End]:
        """Take one whole request."""
        head, _, body = request.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in lines)
        }
        if first != f"{SHAPE['method']} {PATH} HTTP/1.1":
            return [status(404)]
        if headers.get("x-codeium-csrf-token") != TOKEN:
            return [status(403)]
        said = json.loads(body)
        self.bodies.append(said)
        self.texts.append(said["items"][0]["text"])
        return self.answer


def status(code: int, more: str = "") -> bytes:
    """A whole answer without content."""
    return f"HTTP/1.1 {code} x\r\n{more}content-length: 0\r\n\r\n".encode()


@asynccontextmanager
async def agy_service(*answer: bytes | End) -> AsyncIterator[AgyService]:
    """A listening double; without an answer it says yes."""
    service = AgyService(answer or (document(b"{}"),))
    async with tcp_server(service.hear) as service.server:
        yield service
