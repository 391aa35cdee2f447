"""A command's connection: one reply for each request, in order, until it ends."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from bridge.errors import BridgeError, Invalid, Unavailable
from bridge.local.calls import serve_calls
from bridge.local.connection import REQUEST_LIMIT, Connection
from bridge.local.replies import decode_reply
from bridge.local.requests import AnyRequest, Detach, Hello, encode_request
from bridge.local.wire import Incoming, format_frame
from bridge.peer import Peer
from tests.fakes.memory_door import MemoryStream


async def answer(peer: Peer, request: AnyRequest) -> object:
    if isinstance(request, Detach):
        raise Unavailable("server_down", "The server is down.", "Try again.")
    return {"pid": peer.pid, "verb": type(request).__name__}


async def caller(first: bytes) -> tuple[Connection, MemoryStream]:
    near, far = trio.testing.memory_stream_pair()
    await near.send_all(first)
    connection = Connection(far, Peer(uid=1, pid=2), trio.current_time() + 5)
    await connection.receive_first_header()
    return connection, near


def call(request: AnyRequest) -> bytes:
    return format_frame("call", body=encode_request(request))


def replies_in(received: bytes) -> list[bytes]:
    incoming = Incoming()
    incoming.feed(received)
    bodies = []
    while (header := incoming.take_header()) is not None:
        assert header.verb == "reply"
        body = incoming.take_body(header.length)
        assert body is not None
        bodies.append(body)
    return bodies


async def test_many_requests_are_answered_in_order() -> None:
    connection, near = await caller(call(Hello()) + call(Detach()) + call(Hello()))
    await near.send_stream.aclose()

    await serve_calls(connection, answer)

    first, second, third = replies_in(bytes(await near.receive_some()))
    assert decode_reply(first) == decode_reply(third) == b'{"pid":2,"verb":"Hello"}'
    with pytest.raises(BridgeError, match="The server is down"):
        decode_reply(second)


async def test_nonsense_gets_its_reply_and_the_next_request_works() -> None:
    nonsense = format_frame("call", body=b'{"verb":"dance"}')
    connection, near = await caller(nonsense + call(Hello()))
    await near.send_stream.aclose()

    await serve_calls(connection, answer)

    first, second = replies_in(bytes(await near.receive_some()))
    with pytest.raises(BridgeError, match="does not understand"):
        decode_reply(first)
    assert decode_reply(second)


async def test_a_request_over_one_mebibyte_is_not_read() -> None:
    connection, _ = await caller(b"AW1 call %d\n" % (REQUEST_LIMIT + 1))

    with pytest.raises(Invalid, match="over the limit"):
        await serve_calls(connection, answer)


async def test_only_calls_follow_a_call() -> None:
    connection, _ = await caller(call(Hello()) + b"AW1 hook claude Stop 0\n")

    with pytest.raises(Invalid, match="Only calls"):
        await serve_calls(connection, answer)


async def test_an_idle_command_gives_its_place_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    connection, _ = await caller(call(Hello()))

    await serve_calls(connection, answer)

    assert trio.current_time() <= 61


async def test_a_bug_in_an_answer_is_not_an_answer() -> None:
    async def broken(peer: Peer, request: AnyRequest) -> object:
        raise KeyError("bug")

    connection, _ = await caller(call(Hello()))

    with pytest.raises(KeyError):
        await serve_calls(connection, broken)


async def test_a_command_that_leaves_is_unavailable() -> None:
    connection, near = await caller(call(Hello()))
    await near.receive_stream.aclose()

    with pytest.raises(Unavailable):
        await serve_calls(connection, answer)


async def test_a_made_answer_is_sent_while_stopping() -> None:
    connection, near = await caller(call(Hello()))
    with trio.CancelScope() as serving:

        async def stop(peer: Peer, request: AnyRequest) -> object:
            serving.cancel()
            return {"pid": peer.pid}

        await serve_calls(connection, stop)

    (body,) = replies_in(bytes(await near.receive_some()))
    assert decode_reply(body) == b'{"pid":2}'
