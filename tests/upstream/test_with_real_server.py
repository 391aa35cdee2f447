"""The same calls against the real message server, over a real Unix socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from bridge.core.ids import InboxId, MessageId, SubmissionId
from bridge.core.records import Receipt
from bridge.errors import BridgeError, Refused, Unavailable
from bridge.log import open_log
from bridge.server.limits import Settings
from bridge.store.leases import Leases
from bridge.upstream import api, shapes
from bridge.upstream.api import Caller
from bridge.upstream.clients import Server, embedded, open_server
from bridge.upstream.credentials import ChildCredential, FixedToken
from bridge.upstream.stream import StreamPlace, read_stream
from bridge.upstream.stream_events import (
    Alive,
    Arrived,
    LeaseChanged,
    Opened,
    ReceiptHeard,
    StreamEvent,
)
from tests.fakes.clock import FakeClock
from tests.fakes.message_server import Served, served

# The net under a wait on a condition; nothing is timed by it.
NET_S = 20.0
Event = TypeVar("Event", bound=StreamEvent)


class Agent:
    """One attached agent: its lease and its child's caller."""

    def __init__(self, lease: shapes.Lease, caller: Caller) -> None:
        self.lease = lease
        self.id = lease.attachment_id
        self.caller = caller

    async def send(self, target: str, text: str, submission_id: str) -> str:
        result = await api.send(
            self.caller, self.id, text, SubmissionId(submission_id), f"agent:{target}"
        )
        return result.message_id

    @asynccontextmanager
    async def stream(self, cursor: int | None = None) -> AsyncIterator[Heard]:
        sender, receiver = trio.open_memory_channel[StreamEvent](100)
        heard = Heard(receiver)
        place = StreamPlace(self.id, cursor)

        async def read() -> None:
            log = open_log(StringIO(), self.caller.clock)
            async with sender:
                try:
                    await read_stream(self.caller, place, sender, log)
                except BridgeError as error:
                    heard.error = error

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            yield heard
            nursery.cancel_scope.cancel()


class Heard:
    """What a stream says, one event at a time."""

    def __init__(self, events: trio.MemoryReceiveChannel[StreamEvent]) -> None:
        self._events = events
        self.error: BridgeError | None = None

    async def next_of(self, kind: type[Event]) -> Event:
        with trio.fail_after(NET_S):
            async for event in self._events:
                if isinstance(event, kind):
                    return event
        raise AssertionError(f"no {kind.__name__}; {self.error}")

    async def wait_end(self) -> BridgeError | None:
        with trio.fail_after(NET_S):
            async for _ in self._events:
                pass
        return self.error


class Computer:
    """A bridge's side of one server: the person's login and the lease files."""

    def __init__(self, server: Server, running: Served, leases: Leases) -> None:
        self.server = server
        self.clock = running.clock
        self.leases = leases
        self.parent = Caller(server, FixedToken(running.token), running.clock)

    async def attach(self, name: str, session_id: str = "", **more: object) -> Agent:
        request = shapes.AttachRequest(
            "script",
            session_id or f"session-{name}",
            "host-1",
            name,
            **more,  # type: ignore[arg-type]
        )
        lease = await api.attach(self.parent, request)
        if lease.child is not None:
            await self.leases.save(lease.attachment_id, lease.child)
        tokens = await self.leases.read(lease.attachment_id)
        assert tokens is not None
        credential = ChildCredential(
            self.server, lease.attachment_id, tokens, self.leases, self.clock
        )
        return Agent(lease, Caller(self.server, credential, self.clock))


@pytest.fixture
async def running(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[Served]:
    async with served(tmp_path, Settings(), fake_clock) as server:
        yield server


@pytest.fixture
async def computer(running: Served) -> AsyncIterator[Computer]:
    address = embedded(running.folder / "server.sock")
    async with open_server(address) as server:
        yield Computer(server, running, Leases(running.folder / "leases"))


async def test_the_server_says_what_it_is(computer: Computer) -> None:
    hello = await api.hello(computer.parent)

    assert hello.limits["message_characters"] == 20_000
    assert "stream" in hello.features
    assert (await api.tools(computer.parent))["tools"][0]["name"] == "messages"


async def test_a_message_goes_all_the_way_round(computer: Computer) -> None:
    """Sent, heard live, admitted, processed, answered in the same inbox."""
    alice = await computer.attach("alice", purpose="writes")
    bob = await computer.attach("bob")
    assert [each.name for each in bob.lease.roster] == ["alice"]
    async with bob.stream() as to_bob, alice.stream() as to_alice:
        await to_bob.next_of(Opened)
        message_id = await alice.send("bob", "caf\u00e9 \u2028 \U0001f600", "sub-1")
        arrived = (await to_bob.next_of(Arrived)).message

        assert arrived.message_id == message_id
        assert arrived.body == "caf\u00e9 \u2028 \U0001f600"
        assert arrived.sender == "alice"
        assert arrived.sequence > 500_000_000

        for delivery in ("admitted", "processed"):
            row = Receipt(bob.id, arrived.message_id, delivery, 1.0, "agent")
            taken = await api.send_receipts(bob.caller, bob.id, [row])
            assert taken.recorded[0].delivery == delivery
            heard = await to_alice.next_of(ReceiptHeard)
            assert (heard.message_id, heard.delivery) == (message_id, delivery)

        reply = await api.send(
            bob.caller, bob.id, "yes", SubmissionId("r"), inbox_id=arrived.inbox_id
        )
        answer = (await to_alice.next_of(Arrived)).message
        assert (answer.message_id, answer.inbox_id) == (
            reply.message_id,
            arrived.inbox_id,
        )


async def test_the_same_submission_is_one_message(computer: Computer) -> None:
    alice, bob = await computer.attach("alice"), await computer.attach("bob")
    first = await alice.send("bob", "once", "a/b ?#%..")
    assert await alice.send("bob", "once", "a/b ?#%..") == first
    status = await api.sent(alice.caller, alice.id, "a/b ?#%..")
    assert (status.message_id, status.delivery) == (first, "stored")

    page = await api.read(bob.caller, bob.id)
    assert [each.message for each in page.messages] == ["once"]
    with pytest.raises(Refused) as caught:
        await alice.send("bob", "twice", "a/b ?#%..")
    assert caught.value.code == "submission_conflict"


async def test_a_stream_starts_behind_its_cursor(computer: Computer) -> None:
    alice, bob = await computer.attach("alice"), await computer.attach("bob")
    for number in range(22):
        await alice.send("bob", f"text {number}", f"sub-{number}")
    async with bob.stream() as heard:
        seen = [(await heard.next_of(Arrived)).message for _ in range(22)]
        alive = await heard.next_of(Alive)
    async with bob.stream(seen[20].sequence) as heard:
        again = [(await heard.next_of(Arrived)).message.body for _ in range(1)]

    assert [each.body for each in seen] == [f"text {number}" for number in range(22)]
    assert alive.through == seen[-1].sequence
    assert again == [f"text {number}" for number in range(21, 22)]


async def test_reported_progress_is_where_a_new_session_starts(
    computer: Computer,
) -> None:
    alice, bob = await computer.attach("alice"), await computer.attach("bob")
    await alice.send("bob", "old", "sub-1")
    [old] = (await api.read(bob.caller, bob.id)).messages
    assert await api.report_progress(bob.caller, bob.id, old.sequence) == old.sequence
    await api.report_offline(bob.caller, bob.id)
    await alice.send("bob", "new", "sub-2")
    moved = await computer.attach("bob", "another session", confirm=True)

    assert moved.lease.agent_id == bob.lease.agent_id
    assert moved.lease.offered_through == old.sequence
    async with moved.stream() as heard:
        assert (await heard.next_of(Arrived)).message.body == "new"


async def test_reads_releases_purposes_and_the_directory(computer: Computer) -> None:
    alice, bob = await computer.attach("alice"), await computer.attach("bob")
    message_id = MessageId(await alice.send("bob", "hi", "sub-1"))
    [message] = (await api.read(bob.caller, bob.id)).messages
    inbox = await api.read(bob.caller, bob.id, InboxId(message.inbox_id))
    assert [each.message_id for each in inbox.messages] == [message_id]
    with pytest.raises(Refused) as caught:
        await api.read(bob.caller, bob.id, InboxId(message.inbox_id), message.sequence)
    assert caught.value.code == "wrong_cursor"

    unknown = MessageId("msg-0")
    found, _ = await api.ask_release(bob.caller, bob.id, [message_id, unknown])
    assert found.released == (message_id,)
    assert [each.id for each in found.withheld] == [unknown]

    assert await api.set_purpose(bob.caller, bob.id, "reviews") == "reviews"
    with pytest.raises(Unavailable) as busy:
        await api.set_purpose(bob.caller, bob.id, "something else")
    assert busy.value.retry_after_s is not None
    assert 0 < busy.value.retry_after_s <= 60
    names = {each.name: each.purpose for each in await api.agents(bob.caller)}
    assert names == {"alice": "", "bob": "reviews"}


async def test_an_unknown_name_comes_with_the_nearest(computer: Computer) -> None:
    alice = await computer.attach("alice")
    await computer.attach("bob")

    with pytest.raises(Refused) as caught:
        await alice.send("bop", "hi", "sub-1")
    assert caught.value.status == 404
    assert caught.value.details["nearest"] == ["bob"]


async def test_the_public_tool_registers_sends_and_reads(computer: Computer) -> None:
    async def call(action: str, **arguments: object) -> dict[str, object]:
        return await api.call_messages(computer.parent, {"action": action, **arguments})

    await call("register", agent_name="mailbox")
    sent = await call("send", target="agent:mailbox", message="hi", submission_id="s")
    page = await call("read", agent_name="mailbox", after=0)
    assert [each["message_id"] for each in page["messages"]] == [sent["message_id"]]  # type: ignore[attr-defined]
    assert (await call("unregister", agent_name="mailbox"))["unregistered"] is True


# ---- ends ------------------------------------------------------------------------


async def test_a_name_held_by_a_live_session_says_by_whom(computer: Computer) -> None:
    bob = await computer.attach("bob")
    async with bob.stream() as heard:
        await heard.next_of(Opened)
        with pytest.raises(Refused) as caught:
            await computer.attach("bob", "another session")

    assert (caught.value.status, caught.value.code) == (409, "name_held")
    assert caught.value.details["holder"]["session_id"] == "session-bob"  # type: ignore[index]


async def test_a_lease_that_moved_ends_its_stream_and_calls(
    computer: Computer,
) -> None:
    bob = await computer.attach("bob")
    async with bob.stream() as heard:
        await heard.next_of(Opened)
        await computer.attach("robert", "session-bob", confirm=True)
        assert (await heard.next_of(LeaseChanged)).state == "replaced"
        assert await heard.wait_end() is None

    with pytest.raises(Refused) as caught:
        await api.report_progress(bob.caller, bob.id, 500_000_000)
    assert caught.value.status == 410
    assert caught.value.details["state"] == "replaced"


async def test_a_detached_agent_is_refused_for_good(computer: Computer) -> None:
    bob = await computer.attach("bob")
    await api.detach(computer.parent, bob.id)

    with pytest.raises(Refused) as caught:
        await api.read(bob.caller, bob.id)
    assert (caught.value.status, caught.value.code) == (401, "token_refused")
    async with bob.stream() as heard:
        assert isinstance(await heard.wait_end(), Refused)


async def test_a_newer_stream_ends_the_older(computer: Computer) -> None:
    bob = await computer.attach("bob")
    async with bob.stream() as older:
        await older.next_of(Opened)
        async with bob.stream() as newer:
            await newer.next_of(Opened)
            error = await older.wait_end()

    assert isinstance(error, Unavailable)
    assert error.code == "stream_ended"


async def test_after_61_minutes_the_token_is_renewed_and_nothing_noticed(
    computer: Computer,
) -> None:
    bob = await computer.attach("bob")
    before = await computer.leases.read(bob.id)
    computer.clock.advance(61 * 60)
    async with bob.stream() as heard:
        await heard.next_of(Opened)
        assert (await api.read(bob.caller, bob.id)).messages == ()
    after = await computer.leases.read(bob.id)

    assert before is not None
    assert after is not None
    assert after.access_token != before.access_token
    assert after.connection_id == before.connection_id
    assert after.expires_at == computer.clock.wall() + 3600


async def test_a_token_refused_before_its_time_is_renewed_too(
    computer: Computer, running: Served
) -> None:
    """As when this computer's clock is behind the server's."""
    bob = await computer.attach("bob")
    tokens = await computer.leases.read(bob.id)
    assert tokens is not None
    computer.clock.advance(61 * 60)
    late = FakeClock(computer.clock.wall() - 61 * 60)
    credential = ChildCredential(computer.server, bob.id, tokens, computer.leases, late)
    caller = Caller(computer.server, credential, late)

    assert (await api.read(caller, bob.id)).messages == ()


async def test_many_streams_do_not_use_up_the_calls_connections(
    computer: Computer,
) -> None:
    agents = [await computer.attach(f"agent-{number}") for number in range(20)]
    async with trio.open_nursery() as nursery:
        opened = 0

        async def hold(agent: Agent) -> None:
            nonlocal opened
            async with agent.stream() as heard:
                await heard.next_of(Opened)
                opened += 1
                await trio.sleep_forever()

        for agent in agents:
            nursery.start_soon(hold, agent)
        with trio.fail_after(NET_S):
            while opened < len(agents):
                await trio.lowlevel.checkpoint()
            assert len(await api.agents(computer.parent)) == 20
        nursery.cancel_scope.cancel()


async def test_a_server_that_is_gone_is_unavailable(
    tmp_path: Path, fake_clock: FakeClock
) -> None:
    for path in (tmp_path / "none.sock", tmp_path / ("x" * 200)):
        async with open_server(embedded(path)) as server:
            with pytest.raises(Unavailable) as caught:
                await api.hello(Caller(server, FixedToken("t"), fake_clock))
            assert caught.value.code == "server_unreachable"
