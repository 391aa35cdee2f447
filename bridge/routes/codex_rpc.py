"""A conversation with one Codex app-server, up to the thread that is meant.

Owns the JSON messages and what is read in their answers. Promises that nothing
but questions was asked before a thread is known: the server's version is one that
was tried, and the thread is a person's own chat, no part of `codex exec` and no
subagent. What the server says of itself unasked is passed over, and its requests
are left to the clients that follow the thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Self, TypeVar

import msgspec
import trio

from bridge.core.ids import SessionId
from bridge.errors import BridgeError, Refused, Unavailable
from bridge.peer import Peer
from bridge.routes.unix_socket import connect
from bridge.routes.web_socket import WebSocket, gone
from bridge.version import VERSION

VERSIONS = frozenset({(0, 171)})
"""Major and minor of the Codex versions whose server was tried."""

_HINT = "Messages still come by its hooks."
_VERSION = re.compile(r"[^/]*/(\d{1,6})\.(\d{1,6})\.")
_OWN_SOURCES = ("cli", "vscode", "appServer")
_OWN_THREADS = (None, "user")
# What JSON-RPC says of a request that was never begun.
_NOT_BEGUN = (-32600, -32601, -32602)

T = TypeVar("T")


class _Fault(msgspec.Struct, frozen=True):
    code: int


class _Said(msgspec.Struct, frozen=True):
    id: int | str | None = None
    method: object = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: _Fault | None = None


class _Greeting(msgspec.Struct, frozen=True, rename="camel"):
    user_agent: str


class _Status(msgspec.Struct, frozen=True):
    type: str


class Thread(msgspec.Struct, frozen=True, rename="camel"):
    """What the server says of one thread; the fields that we read of it."""

    id: str
    session_id: str
    status: _Status
    source: object
    thread_source: str | None = None
    parent_thread_id: str | None = None
    can_accept_direct_input: bool | None = None

    @property
    def is_loaded(self) -> bool:
        """The server runs it, and takes its input."""
        takes_input = self.can_accept_direct_input is True
        return self.status.type in ("idle", "active") and takes_input

    @property
    def is_running(self) -> bool:
        """A turn of it runs."""
        return self.status.type == "active"

    @property
    def is_elsewhere(self) -> bool:
        """The server knows it from its files alone."""
        return self.status.type == "notLoaded"


class _ThreadRead(msgspec.Struct, frozen=True):
    thread: Thread


class CodexRpc:
    """An app-server that was greeted; to be closed with `async with`."""

    def __init__(self, stream: trio.SocketStream, socket: WebSocket) -> None:
        self._stream = stream
        self._socket = socket
        self._numbers = count(1)

    @classmethod
    async def open(cls, path: str, is_server: Callable[[Peer], bool]) -> Self:
        """Connect, and check the version; raises Refused or Unavailable."""
        stream = await connect(path, is_server)
        try:
            self = cls(stream, await WebSocket.over(stream))
            await self._greet()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection at once."""
        await trio.aclose_forcefully(self._stream)

    async def thread(self, session_id: SessionId) -> Thread:
        """The person's own thread of this id; raises Refused for any other."""
        read = await self.ask("thread/read", {"threadId": session_id}, _ThreadRead)
        thread = read.thread
        if thread.id != session_id or thread.session_id != session_id:
            raise _not_this("it names another chat")
        if thread.parent_thread_id or thread.thread_source not in _OWN_THREADS:
            raise _not_this("that thread is a part of another one, such as a subagent")
        if thread.source == "exec":
            raise _not_this("that thread belongs to codex exec, which ends by itself")
        if thread.source not in _OWN_SOURCES:
            raise _not_this("nobody knows who began that thread")
        return thread

    async def ask(self, method: str, params: Mapping[str, object], kind: type[T]) -> T:
        """One call and its answer.

        Raises Refused when the server never began it, Unavailable when it cannot
        be told. The server's own words are in neither, since they repeat ours.
        """
        number = next(self._numbers)
        await self._send({"id": number, "method": method, "params": params})
        while True:
            said = _read(await self._socket.receive(), _Said)
            if said.method is None and said.id == number:
                return _answer(said, kind)

    async def _greet(self) -> None:
        client = {"name": "agentworks", "title": "AgentWorks", "version": VERSION}
        capabilities = {"experimentalApi": True}
        said = await self.ask(
            "initialize",
            {"clientInfo": client, "capabilities": capabilities},
            _Greeting,
        )
        found = _VERSION.match(said.user_agent)
        version = (int(found[1]), int(found[2])) if found else None
        if version not in VERSIONS:
            raise _not_tried(version)
        await self._send({"method": "initialized"})

    async def _send(self, message: Mapping[str, object]) -> None:
        await self._socket.send(msgspec.json.encode(message).decode())


def _answer(said: _Said, kind: type[T]) -> T:
    if said.error is None:
        return _read(bytes(said.result), kind)
    if said.error.code in _NOT_BEGUN:
        raise Refused(
            "native_refused", f"Codex did not take it (error {said.error.code}).", _HINT
        )
    raise Unavailable(
        "native_failed", f"Codex failed at it (error {said.error.code}).", _HINT
    )


def _read(text: str | bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise gone("it answers otherwise than was tried") from error


def _not_tried(version: tuple[int, int] | None) -> BridgeError:
    known = ", ".join(f"{major}.{minor}" for major, minor in sorted(VERSIONS))
    is_called = f"{version[0]}.{version[1]}" if version else "of no known kind"
    return Refused(
        "native_version",
        f"This Codex is {is_called}, and its server was tried with {known} only, so"
        " it is not used.",
        _HINT,
    )


def _not_this(why: str) -> BridgeError:
    return Refused(
        "native_thread",
        f"Codex's server is not used for this chat, since {why}.",
        _HINT,
    )
