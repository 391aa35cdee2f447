"""Who may come in, how many, for how long unheard, and how a refusal sounds."""

from __future__ import annotations

import errno
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from bridge.errors import Invalid, Refused, Unavailable
from bridge.local.connection import Connection
from bridge.local.listener import Caps, Door, Serve
from bridge.peer import Peer
from tests.fakes.memory_door import MemoryListener, MemoryLog, MemoryStream, read_all

OWN_UID = 1000
SILENCE = b"AW1 print 0 stdout 0\n"


class House:
    """A door with its listener, its log, and whom the kernel names next."""

    def __init__(self) -> None:
        self.listener = MemoryListener()
        self.log = MemoryLog()
        self.peer = Peer(uid=OWN_UID, pid=42)
        self.served: list[Connection] = []

    def identify(self, stream: object) -> Peer:
        return self.peer


@asynccontextmanager
async def open_house(
    serve: Serve | None = None, caps: Caps | None = None
) -> AsyncIterator[House]:
    house = House()

    async def keep(connection: Connection) -> None:
        house.served.append(connection)
        await trio.sleep_forever()

    door = Door(
        serve or keep,
        own_uid=OWN_UID,
        log=house.log,
        caps=caps,
        identify=house.identify,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.accept_forever, house.listener)
        yield house
        nursery.cancel_scope.cancel()


async def say(house: House, words: bytes) -> MemoryStream:
    stream = house.listener.connect()
    await stream.send_all(words)
    await trio.testing.wait_all_tasks_blocked()
    return stream


def error_in(reply: bytes) -> dict[str, Any]:
    header, _, body = reply.partition(b"\n")
    assert header == b"AW1 reply %d" % len(body)
    error = msgspec.json.decode(body)["error"]
    assert isinstance(error, dict)
    return error


async def test_a_peer_is_served_with_its_header_and_its_first_bytes() -> None:
    async with open_house() as house:
        await say(house, b'AW1 mcp claude 0\n{"jsonrpc":')

        (connection,) = house.served
        assert connection.header.verb == "mcp"
        assert connection.header.words == ("claude",)
        assert connection.peer == Peer(uid=OWN_UID, pid=42)
        assert connection.take_received() == b'{"jsonrpc":'


@pytest.mark.parametrize("uid", [0, 65534])
async def test_another_user_is_closed_unread_and_unanswered(uid: int) -> None:
    async with open_house() as house:
        house.peer = Peer(uid=uid, pid=42)
        stream = house.listener.connect()

        assert await read_all(stream) == b""
        assert house.served == []
        assert house.log.lines == [("peer_rejected", {"code": "other_user"})]


async def test_not_a_byte_of_another_user_is_read() -> None:
    async with open_house() as house:
        house.peer = Peer(uid=0, pid=42)
        near, far = trio.testing.memory_stream_pair()
        reads: list[str] = []

        async def note() -> None:
            reads.append("read")

        far.receive_stream.receive_some_hook = note
        await near.send_all(b"AW1 call 0\n")

        house.listener.bring(far)
        assert await read_all(near) == b""

        assert reads == []


@pytest.mark.parametrize(
    "flood",
    [
        b"x" * 65_536,
        b"\0" * 65_536,
        b"AW1 call 4294967296\n" + b"x" * 65_000,
        b"AW1 hook claude Stop 9999999999\n" + b"x" * 65_000,
        b"AW1 call 1048576\n" + b"[" * 65_000,
        b"AW1 call 0\n" * 300,
    ],
)
async def test_no_flood_of_garbage_takes_memory(flood: bytes) -> None:
    async def serve(connection: Connection) -> None:
        await connection.receive_body(1024 * 1024)
        while await connection.receive_frame(1024 * 1024) is not None:
            pass

    async with open_house(serve) as house:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            near = house.listener.connect()
            with suppress(trio.BrokenResourceError):
                await near.send_all(flood)
            await near.aclose()
        await trio.testing.wait_all_tasks_blocked()
        used = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()

        assert house.served == []
        assert used < 8 * 1024 * 1024


async def test_rejections_are_logged_once_a_minute(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_house() as house:
        house.peer = Peer(uid=0, pid=42)
        for _ in range(5):
            await read_all(house.listener.connect())
        assert house.log.events() == ["peer_rejected"]

        await trio.sleep(61)
        await read_all(house.listener.connect())
        assert house.log.events() == ["peer_rejected"] * 2


async def test_a_peer_of_another_container_is_told_so() -> None:
    async with open_house() as house:
        house.peer = Peer(uid=OWN_UID, pid=0)
        reply = await read_all(house.listener.connect())

        assert error_in(reply)["code"] == "other_container"
        assert house.served == []


@pytest.mark.parametrize("words", [b"", b"AW1 call 9"])
async def test_a_silent_peer_is_closed_at_five_seconds(
    words: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_house() as house:
        start = trio.current_time()
        stream = house.listener.connect()
        await stream.send_all(words)

        reply = await read_all(stream)

        assert trio.current_time() - start == 5
        assert error_in(reply)["code"] == "peer_slow"


async def test_one_byte_at_a_time_does_not_buy_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_house() as house:
        start = trio.current_time()
        stream = house.listener.connect()

        async def drip() -> None:
            for byte in b"AW1 call 1":
                await stream.send_all(bytes([byte]))
                await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(drip)
            await read_all(stream)
            assert trio.current_time() - start == 5
            nursery.cancel_scope.cancel()


async def test_a_body_must_come_within_the_same_five_seconds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bodies: list[bytes] = []

    async def serve(connection: Connection) -> None:
        bodies.append(await connection.receive_body(100))

    async with open_house(serve) as house:
        start = trio.current_time()
        stream = await say(house, b"AW1 call 10\nhalf")
        await trio.sleep(4)

        reply = await read_all(stream)

        assert trio.current_time() - start == 5
        assert error_in(reply)["code"] == "peer_slow"
        assert bodies == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "bad_frame"),
        (b"AW1 dance 0\n", "unknown_verb"),
        (b"\xff" * 300, "bad_frame"),
        (b"AW1 call 4294967296000\n", "bad_frame"),
    ],
)
async def test_garbage_is_refused_and_logged_without_its_content(
    words: bytes, code: str
) -> None:
    async with open_house() as house:
        stream = await say(house, words)

        assert error_in(await read_all(stream))["code"] == code
        assert house.log.lines == [("bad_request", {"code": code, "pid": 42})]


async def test_a_peer_that_ends_in_its_header_is_no_trouble() -> None:
    async with open_house() as house:
        stream = await say(house, b"AW1 ca")
        await stream.send_stream.aclose()

        assert error_in(await read_all(stream))["code"] == "truncated"


async def test_a_peer_that_says_nothing_and_leaves_is_no_trouble() -> None:
    async with open_house() as house:
        stream = house.listener.connect()
        await stream.aclose()
        await trio.testing.wait_all_tasks_blocked()

        assert house.log.lines == []


async def test_hooks_and_calls_have_one_cap_and_children_another() -> None:
    async with open_house(caps=Caps(unheard=1, short=2, long=3)) as house:
        for words in (b"AW1 call 0\n", b"AW1 hook claude Stop 0\n"):
            await say(house, words)
        for _ in range(3):
            await say(house, b"AW1 mcp claude 0\n")
        assert len(house.served) == 5

        call = await say(house, b"AW1 call 0\n")
        hook = await say(house, b"AW1 hook claude Stop 0\n")
        child = await say(house, b"AW1 mcp claude 0\n")

        assert error_in(await read_all(call))["code"] == "busy"
        assert await read_all(hook) == SILENCE
        assert await read_all(child) == b""
        assert len(house.served) == 5


async def test_the_unheard_have_a_cap_of_their_own() -> None:
    async with open_house(caps=Caps(unheard=2)) as house:
        silent = [house.listener.connect() for _ in range(2)]
        await trio.testing.wait_all_tasks_blocked()

        assert error_in(await read_all(house.listener.connect()))["code"] == "busy"

        await silent[0].send_all(b"AW1 call 0\n")
        await trio.testing.wait_all_tasks_blocked()
        await say(house, b"AW1 call 0\n")
        assert len(house.served) == 2


async def test_a_place_is_free_again_when_its_peer_ends() -> None:
    async def serve(connection: Connection) -> None:
        await connection.receive_frame(0)

    async with open_house(serve, caps=Caps(short=1)) as house:
        for _ in range(3):
            stream = await say(house, b"AW1 call 0\n")
            await stream.aclose()
            await trio.testing.wait_all_tasks_blocked()
        stream = await say(house, b"AW1 call 0\n")
        refused = await say(house, b"AW1 call 0\n")

        assert error_in(await read_all(refused))["code"] == "busy"
        await stream.aclose()


@pytest.mark.parametrize(
    "reason", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS]
)
async def test_a_want_of_descriptors_is_waited_out(
    reason: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_house() as house:
        await trio.testing.wait_all_tasks_blocked()
        house.listener.failures = [OSError(reason, "full")] * 3
        await say(house, b"AW1 call 0\n")
        second = await say(house, b"AW1 call 0\n")
        await trio.sleep(1)

        assert len(house.served) == 2
        assert house.log.events() == ["accept_paused"] * 3
        await second.aclose()


async def test_another_accept_error_ends_the_door() -> None:
    listener = MemoryListener()
    listener.failures = [OSError(errno.EBADF, "gone")]

    async def serve(connection: Connection) -> None:
        raise AssertionError

    door = Door(serve, own_uid=OWN_UID, log=MemoryLog())
    with pytest.RaisesGroup(pytest.RaisesExc(OSError, match="gone")):
        await door.accept_forever(listener)


async def test_a_bridge_error_ends_one_peer_with_its_reason() -> None:
    async def serve(connection: Connection) -> None:
        if connection.header.verb == "hook":
            raise Unavailable("late", "Too late.")
        raise Refused("held", "Held.", "Confirm.")

    async with open_house(serve) as house:
        hook = await say(house, b"AW1 hook claude Stop 0\n")
        call = await say(house, b"AW1 call 0\n")

        assert await read_all(hook) == SILENCE
        assert error_in(await read_all(call)) == {
            "code": "held",
            "message": "Held.",
            "hint": "Confirm.",
            "exit": 1,
        }


async def test_a_bridge_error_inside_a_nursery_ends_one_peer() -> None:
    async def fail() -> None:
        raise Invalid("nonsense", "Nonsense.")

    async def serve(connection: Connection) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep_forever)

    async with open_house(serve) as house:
        call = await say(house, b"AW1 call 0\n")

        assert error_in(await read_all(call))["code"] == "nonsense"


async def test_a_bug_ends_the_nursery() -> None:
    async def serve(connection: Connection) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_by_mistake)
            nursery.start_soon(fail_by_reason)

    async def fail_by_mistake() -> None:
        raise KeyError("bug")

    async def fail_by_reason() -> None:
        raise Invalid("nonsense", "Nonsense.")

    with pytest.RaisesGroup(KeyError, flatten_subgroups=True):
        async with open_house(serve) as house:
            await say(house, b"AW1 call 0\n")
            await trio.sleep_forever()


async def test_what_is_inside_can_be_counted() -> None:
    house = House()

    async def keep(connection: Connection) -> None:
        await trio.sleep_forever()

    door = Door(keep, own_uid=OWN_UID, log=house.log, identify=house.identify)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.accept_forever, house.listener)
        await say(house, b"AW1 mcp claude 0\n")
        await say(house, b"AW1 hook claude Stop 0\n")
        await say(house, b"AW1 ca")

        assert door.inside() == {"long": 1, "short": 1, "unheard": 1}
        nursery.cancel_scope.cancel()
