"""A conversation with Codex's desktop app, over its own coordination socket.

Owns the frames and the requests. Nothing of it is documented by the vendor: the
framing is that of Codex's published source, the rest what several independent
clients of the app show alike; no app was at hand to try it with. So whatever is
said otherwise ends the conversation. Promises that we offer to handle nothing, and
that what others tell each other is passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Self, TypeVar
from uuid import UUID

import msgspec
import trio

from bridge.errors import Refused, Unavailable
from bridge.peer import Peer
from bridge.routes.unix_socket import connect

FRAME_LIMIT = 16 * 1024 * 1024
_LENGTH = struct.Struct("<I")
_BEFORE_INITIALIZE = "initializing-client"
_CLIENT = "agentworks"
_HINT = "Messages still come by its hooks."

T = TypeVar("T")


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """The app's answer to one request; `handled_by_client_id` is who gave it."""

    result_type: str
    error: str | None = None
    handled_by_client_id: str | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Heard(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    request_id: str = ""


class _Client(msgspec.Struct, frozen=True, rename="camel"):
    client_id: str


class CodexIpc:
    """One connection as a client of the app; to be closed with `async with`."""

    def __init__(
        self, stream: trio.SocketStream, random_bytes: Callable[[int], bytes]
    ) -> None:
        self._stream = stream
        self._random_bytes = random_bytes
        self._received = bytearray()
        self._client_id = _BEFORE_INITIALIZE

    @classmethod
    async def open(
        cls,
        path: str,
        is_app: Callable[[Peer], bool],
        random_bytes: Callable[[int], bytes],
    ) -> Self:
        """Connect and be known as a client; raises Refused or Unavailable."""
        self = cls(await connect(path, is_app), random_bytes)
        try:
            said = await self.ask("initialize", 0, {"clientType": _CLIENT})
            self._client_id = read(said.result, _Client).client_id
        except BaseException:
            await self.close()
            raise
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection at once."""
        await trio.aclose_forcefully(self._stream)

    async def ask(
        self,
        method: str,
        version: int,
        params: Mapping[str, object],
        target: str = "",
    ) -> Answer:
        """One request and its answer, a no included; raises Unavailable without one.

        `target` is the client that is meant, empty for whoever handles it.
        """
        request_id = str(UUID(bytes=self._random_bytes(16), version=4))
        request: dict[str, object] = {
            "type": "request",
            "requestId": request_id,
            "sourceClientId": self._client_id,
            "version": version,
            "method": method,
            "params": params,
        }
        if target:
            request["targetClientId"] = target
        await self._send(request)
        return await self._answer(request_id)

    async def _answer(self, request_id: str) -> Answer:
        while True:
            frame = await self._frame()
            heard = read(frame, _Heard)
            if heard.type == "client-discovery-request":
                await self._decline(heard.request_id)
            if (heard.type, heard.request_id) == ("response", request_id):
                return read(frame, Answer)

    async def _decline(self, request_id: str) -> None:
        await self._send(
            {
                "type": "client-discovery-response",
                "requestId": request_id,
                "response": {"canHandle": False},
            }
        )

    async def _send(self, message: Mapping[str, object]) -> None:
        body = msgspec.json.encode(message)
        try:
            await self._stream.send_all(_LENGTH.pack(len(body)) + body)
        except (trio.BrokenResourceError, OSError) as error:
            raise gone("the connection broke") from error

    async def _frame(self) -> bytes:
        (length,) = _LENGTH.unpack(await self._exactly(_LENGTH.size))
        if length > FRAME_LIMIT:
            raise gone("it said more than is taken in at once")
        return await self._exactly(length)

    async def _exactly(self, count: int) -> bytes:
        while len(self._received) < count:
            try:
                more = await self._stream.receive_some()
            except (trio.BrokenResourceError, OSError) as error:
                raise gone("the connection broke") from error
            if not more:
                raise gone("it closed the connection")
            self._received += more
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken


def read(text: bytes | msgspec.Raw, kind: type[T]) -> T:
    """What the app said, in its known shape; raises Unavailable for another."""
    try:
        return msgspec.json.decode(bytes(text), type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise gone("it answers otherwise than is known") from error


def gone(why: str) -> Unavailable:
    """The app is of no use any more."""
    return Unavailable(
        "native_gone",
        f"The Codex app's own socket is of no use, since {why}.",
        _HINT,
    )


def refused(why: str) -> Refused:
    """The app is there, and is not used for this chat."""
    return Refused(
        "native_thread", f"The Codex app is not used for this chat, since {why}.", _HINT
    )
