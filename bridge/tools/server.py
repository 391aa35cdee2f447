"""One MCP child's session, on the official SDK, over the socket it came by.

Owns the lines between the child and the SDK. Promises that no text of an
exception reaches a host; that arguments are checked before a verb sees them; that
a host which asks too much at once is not read until it is served; that nothing
is ever asked of the host, whose request ids would be mixed up by a new session;
that nothing is pushed where it was not asked for; and that the session ends with
its stream.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Self, TypeAlias

import anyio
import mcp_types as types
import trio
import trio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from msgspec import Struct
from pydantic import ValidationError

from bridge.errors import BridgeError, Unavailable, Unknown
from bridge.tools import catalog

LINE_LIMIT = 1024 * 1024  # bytes of one line of the host
CALLS_LIMIT = 32  # in flight for each child; then its lines wait
CALL_S = 60.0  # longer than any verb's own deadlines
SEND_S = 60.0  # a host may be stopped for a while; then its child connects again
PUSH_S = 2.0  # for what was not asked for: mail has other ways too
_CHUNK = 64 * 1024
_INSTRUCTIONS = (
    "Messages between this chat and other agents of the same person. The tools work "
    "once the person has attached this chat; no tool can attach it."
)
_ENDS = (
    trio.BrokenResourceError,
    trio.ClosedResourceError,
    trio.TooSlowError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
)
_LOGGER = logging.getLogger("agentworks.tools")

Context: TypeAlias = ServerRequestContext[Any, Any]
ToServer: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
ToHost: TypeAlias = MemoryObjectSendStream[SessionMessage]
FromServer: TypeAlias = MemoryObjectReceiveStream[SessionMessage]


class ToolCall(Struct, frozen=True):
    """One call with checked arguments; `meta` is what the host says of it.

    `arguments` has every argument of the tool's Struct, defaults included.
    """

    name: str
    verb: str
    arguments: dict[str, Any]
    meta: dict[str, Any]


class ToolOutcome(Struct, frozen=True):
    """What the agent reads."""

    text: str
    is_error: bool = False


Call: TypeAlias = Callable[[ToolCall], Awaitable[ToolOutcome]]
# What a host is told of a server that may push into the chat.
_CHANNEL: dict[str, dict[str, Any]] = {"claude/channel": {}}


async def serve_mcp(
    stream: trio.abc.Stream,
    first_bytes: bytes,
    call: Call,
    opened: Callable[[Output], None] | None = None,
) -> None:
    """Serve until the child or its stream ends; `call` does what a tool does.

    `first_bytes` were read already. Never closes the stream. With `opened` it is a
    channel, and that is called when the host may be pushed to.
    """
    server = _server(call)
    to_server, from_host = anyio.create_memory_object_stream[
        SessionMessage | Exception
    ]()
    to_host, from_server = anyio.create_memory_object_stream[SessionMessage](16)
    options = server.create_initialization_options(
        NotificationOptions(tools_changed=True), _CHANNEL if opened else {}
    )
    async with trio.open_nursery() as nursery:
        scope = nursery.cancel_scope
        output = Output(stream, scope.cancel)
        session = _Session(to_server, to_host.clone(), output, opened)
        with to_server, session.to_host, from_host, from_server, output:
            nursery.start_soon(_until_broken, scope, session.write, from_server)
            nursery.start_soon(_until_broken, scope, session.read, stream, first_bytes)
            await server.run(from_host, to_host, options)
            scope.cancel()


async def _until_broken(
    scope: trio.CancelScope, work: Callable[..., Awaitable[None]], *words: object
) -> None:
    """Run one direction; a stream that broke, or a host that is stuck, ends both."""
    try:
        await work(*words)
    except _ENDS:
        scope.cancel()


class Output:
    """The lines to one child, whole and one at a time.

    `is_open`: its host has finished the handshake, and may be pushed to.
    """

    def __init__(self, stream: trio.abc.SendStream, end: Callable[[], None]) -> None:
        self._stream = stream
        self._end = end
        self._writing = trio.Lock()
        self.is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False

    async def answer(self, line: str) -> None:
        """Write a line within SEND_S; raises as the stream does, or TooSlowError."""
        with trio.fail_after(SEND_S):
            async with self._writing:
                await self._stream.send_all(line.encode() + b"\n")

    async def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Write what nobody asked for, within PUSH_S.

        Raises Unavailable when not a byte of it was written, Unknown when some may
        have been: then the session ends, for half a line spoils the next one.
        """
        line = _notification(method, params)
        has_begun = False
        if self.is_open:
            with trio.move_on_after(PUSH_S), suppress(*_ENDS):
                async with self._writing:
                    has_begun = True
                    await self._stream.send_all(line)
                    return
        if not has_begun:
            raise Unavailable("channel_busy", "the chat's channel takes nothing now")
        self._end()
        raise Unknown("channel_broken", "the chat's channel broke in the middle")


def _notification(method: str, params: Mapping[str, object]) -> bytes:
    said = types.JSONRPCNotification(jsonrpc="2.0", method=method, params=dict(params))
    return said.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


class _Session:
    """The lines of one child, and how many calls are under way."""

    def __init__(
        self,
        to_server: ToServer,
        to_host: ToHost,
        output: Output,
        opened: Callable[[Output], None] | None,
    ) -> None:
        self.to_server = to_server
        self.to_host = to_host
        self._output = output
        self._opened = opened
        self._room = trio.Semaphore(CALLS_LIMIT)
        self._calls: dict[types.RequestId, int] = {}

    async def read(self, stream: trio.abc.Stream, first_bytes: bytes) -> None:
        """Take the host's lines until it ends, then tell the server so."""
        buffer = bytearray()
        chunk = first_bytes or await stream.receive_some(_CHUNK)
        while chunk:
            buffer += chunk
            *lines, rest = buffer.split(b"\n")
            buffer = rest[: LINE_LIMIT + 1]  # still too long, and no longer
            for line in lines:
                await self._take(line)
            chunk = await stream.receive_some(_CHUNK)
        self.to_server.close()

    async def _take(self, line: bytearray) -> None:
        if not line.strip():
            return
        if len(line) > LINE_LIMIT:
            await self._refuse(None, types.INVALID_REQUEST, "Over 1 MiB in one line.")
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(bytes(line))
        except ValidationError:
            await self._refuse(None, types.PARSE_ERROR, "Not one JSON-RPC message.")
            return
        if isinstance(message, types.JSONRPCRequest):
            await self._ask(message)
        elif isinstance(message, types.JSONRPCNotification):
            await self.to_server.send(SessionMessage(message))
            if message.method == "notifications/initialized" and self._opened:
                self._output.is_open = True
                self._opened(self._output)

    async def _ask(self, request: types.JSONRPCRequest) -> None:
        """Pass a request on; a call waits here, unread, while there are too many."""
        if request.method == "server/discover":
            # Without it hosts use the revision that has unsolicited notifications.
            await self._refuse(request.id, types.METHOD_NOT_FOUND, "Method not found")
            return
        unanswered = None
        if request.method == "tools/call":
            await self._room.acquire()
            self._calls[request.id] = self._calls.get(request.id, 0) + 1
            unanswered = ServerMessageMetadata(
                on_request_unanswered=partial(self._settle_unanswered, request.id)
            )
        await self.to_server.send(SessionMessage(request, metadata=unanswered))

    async def _refuse(self, id_: types.RequestId | None, code: int, text: str) -> None:
        error = types.ErrorData(code=code, message=text)
        refusal = types.JSONRPCError(jsonrpc="2.0", id=id_, error=error)
        await self.to_host.send(SessionMessage(refusal))

    async def write(self, from_server: FromServer) -> None:
        """Write what the server says, each line within SEND_S."""
        async for sent in from_server:
            message = sent.message
            await self._output.answer(
                message.model_dump_json(by_alias=True, exclude_unset=True)
            )
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                self._settle(message.id)

    async def _settle_unanswered(self, id_: types.RequestId) -> None:
        self._settle(id_)

    def _settle(self, id_: types.RequestId | None) -> None:
        """One call of that id is over; other ids are not counted."""
        if id_ is None or not self._calls.get(id_):
            return
        self._calls[id_] -= 1
        if not self._calls[id_]:
            del self._calls[id_]
        self._room.release()


def _server(call: Call) -> Server[Any]:
    async def list_tools(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate(json.loads(catalog.listing()))

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        meta = (context.params or {}).get("_meta")
        outcome = await _perform(call, params.name, params.arguments or {}, meta or {})
        # A lone surrogate would break the line that carries it.
        text = outcome.text.encode(errors="replace").decode()
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], is_error=outcome.is_error)

    server: Server[Any] = Server(
        "agentworks",
        version=catalog.VERSION,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.clear()  # it traces calls, and nobody asked for that
    return server


async def _perform(
    call: Call, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]
) -> ToolOutcome:
    """The outcome whatever happens: the SDK would send an exception's text."""
    try:
        tool = catalog.tool_named(name)
        checked = catalog.check(tool, arguments)
        with trio.fail_after(CALL_S):
            return await call(ToolCall(name, tool.verb, checked, dict(meta)))
    except BridgeError as error:
        return ToolOutcome(error.sentence(), is_error=True)
    except trio.TooSlowError:
        reason = f"it took more than {CALL_S:.0f} seconds"
    except Exception as error:
        # A bug ends its call, not the chat's session; its words may quote a message.
        _LOGGER.exception("a tool failed", exc_info=error)
        reason = "of an error in the bridge, which is in its log"
    return ToolOutcome(
        f"{name} was given up because {reason}. It may have happened: to send or reply,"
        " call again with the same submission_id, which never sends twice.",
        is_error=True,
    )
