"""The daemon's side of a command's connection: requests in, replies out, in order.

Promises that each request gets exactly one reply, that a BridgeError becomes an
honest one, and that an idle command does not hold its place for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from bridge.errors import BridgeError, Invalid
from bridge.local.connection import REQUEST_LIMIT, Connection
from bridge.local.replies import encode_error, encode_ok
from bridge.local.requests import AnyRequest, decode_request
from bridge.local.wire import format_frame
from bridge.peer import Peer

IDLE_S = 60.0  # between two requests of one command

AnswerCall = Callable[[Peer, AnyRequest], Awaitable[object]]


async def serve_calls(connection: Connection, answer: AnswerCall) -> None:
    """Serve a peer whose first header is `call` until it ends or is idle."""
    body: bytes | None = await connection.receive_body(REQUEST_LIMIT)
    while body is not None:
        reply = await _reply_to(connection.peer, body, answer)
        # Race: an answer that was made goes out although the bridge is stopping,
        # as when the call was stop (test_a_made_answer_is_sent_while_stopping).
        with trio.CancelScope(shield=True):
            await connection.send(reply)
        body = await _next_body(connection)


async def _reply_to(peer: Peer, body: bytes, answer: AnswerCall) -> bytes:
    try:
        reply = encode_ok(await answer(peer, decode_request(body)))
    except BridgeError as error:
        reply = encode_error(error)
    return format_frame("reply", body=reply)


async def _next_body(connection: Connection) -> bytes | None:
    with trio.move_on_after(IDLE_S):
        frame = await connection.receive_frame(REQUEST_LIMIT)
        if frame is None:
            return None
        header, body = frame
        if header.verb != "call":
            raise Invalid("bad_frame", "Only calls may follow a call.")
        return body
    return None
