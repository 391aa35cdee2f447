"""Frames of any shape end in a message, or in the one error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    TextMessage,
)

from bridge.errors import Unavailable
from bridge.routes import web_socket
from bridge.routes.web_socket import WebSocket


class Far:
    """The other end of one connection, which speaks frames."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.frames = WSConnection(ConnectionType.SERVER)

    async def accept(self) -> None:
        """Take the upgrade."""
        self.frames.receive_data(await self.stream.receive_some())
        list(self.frames.events())
        await self.say(AcceptConnection())

    async def say(self, *events: Event) -> None:
        """Write them in one piece."""
        await self.stream.send_all(b"".join(map(self.frames.send, events)))

    async def hear(self) -> list[Event]:
        """What came next."""
        self.frames.receive_data(await self.stream.receive_some())
        return list(self.frames.events())


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[trio.SocketStream, Far]]:
    ours, theirs = map(trio.SocketStream, trio.socket.socketpair())
    async with ours, theirs:
        yield ours, Far(theirs)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[WebSocket, Far]]:
    async with pair() as (stream, far):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(far.accept)
            near = await WebSocket.over(stream)
        yield near, far


async def test_a_message_in_several_frames_is_one_and_pings_are_answered() -> None:
    async with connected() as (near, far):
        await far.say(
            TextMessage(data="漢", message_finished=False),
            Ping(payload=b"?"),
            TextMessage(data="字", message_finished=True),
        )

        assert await near.receive() == "漢字"
        (pong,) = await far.hear()
        assert pong == Pong(payload=b"?")


async def test_what_is_sent_arrives_whole_and_masked() -> None:
    async with connected() as (near, far):
        text = "x" * 70_000
        async with trio.open_nursery() as nursery:
            nursery.start_soon(near.send, text)
            heard = ""
            while len(heard) < len(text):
                heard += "".join(
                    each.data
                    for each in await far.hear()
                    if isinstance(each, TextMessage)
                )

        assert heard == text


@pytest.mark.parametrize("end", ["closes", "hangs up", "breaks", "raves"])
async def test_every_end_is_one_error(end: str) -> None:
    async with connected() as (near, far):
        if end == "closes":
            await far.say(CloseConnection(code=1000))
        elif end == "raves":
            await far.stream.send_all(b"\xff" * 40)
        elif end == "breaks":
            await far.stream.send_all(b"\x81\x05ab")
            await far.stream.aclose()
        else:
            await far.stream.aclose()

        with pytest.raises(Unavailable, match="of no use"):
            await near.receive()


async def test_who_takes_no_upgrade_is_of_no_use() -> None:
    async with pair() as (stream, far):

        async def refuse() -> None:
            far.frames.receive_data(await far.stream.receive_some())
            list(far.frames.events())
            await far.say(RejectConnection(status_code=403))
            await far.stream.aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse)
            with pytest.raises(Unavailable):
                await WebSocket.over(stream)


async def test_a_message_without_end_is_not_gathered() -> None:
    async with connected() as (near, far):
        piece = TextMessage(data="x" * 60_000, message_finished=False)

        async def pour() -> None:
            with trio.move_on_after(30):
                for _ in range(web_socket.MESSAGE_LIMIT // 60_000 + 2):
                    await far.say(piece)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pour)
            with pytest.raises(Unavailable, match="more than is taken in"):
                await near.receive()
            nursery.cancel_scope.cancel()


@given(st.binary(max_size=300), st.booleans())
async def test_bytes_of_any_shape_are_messages_up_to_the_error(
    raw: bytes, is_upgraded: bool
) -> None:
    async with pair() as (stream, far), trio.open_nursery() as nursery:
        if is_upgraded:
            nursery.start_soon(far.accept)
            near = await WebSocket.over(stream)
        await far.stream.send_all(raw)
        await far.stream.send_eof()
        if is_upgraded:
            with pytest.raises(Unavailable):
                await read_all(near)
        else:
            with pytest.raises(Unavailable):
                await WebSocket.over(stream)


async def read_all(near: WebSocket) -> None:
    while True:
        assert isinstance(await near.receive(), str)
