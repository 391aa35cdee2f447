"""Tokens: renewed once, saved before used, and never in a storm."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

import httpx
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.ids import AttachmentId
from bridge.core.tokens import ChildTokens
from bridge.errors import Invalid, Refused, StorageFull, Unavailable
from bridge.log import open_log
from bridge.upstream import api
from bridge.upstream.api import Caller
from bridge.upstream.credentials import ChildCredential, FixedToken, ReadToken
from bridge.upstream.stream import StreamPlace, read_stream
from bridge.upstream.stream_events import Opened, StreamEvent
from tests.fakes.clock import FakeClock
from tests.fakes.scripted_server import (
    HANG,
    Answer,
    ScriptedServer,
    refused,
    said,
    stream,
)
from tests.upstream.callers import Callers

ATTACHMENT_ID = AttachmentId("att-1")
FIRST = ChildTokens("conn-1", "access-1", "refresh-1", 1_790_003_600.0)
GRANT = {
    "access_token": "access-2",
    "refresh_token": "refresh-2",
    "expires_in": 3600,
    "token_type": "Bearer",
}
HELLO = {"version": "1"}


class Kept:
    """A keeper in memory; `full` makes saving fail."""

    def __init__(self, tokens: ChildTokens | None = FIRST) -> None:
        self.tokens = tokens
        self.saves = 0
        self.is_full = False
        self.is_locked = False

    async def read(self, attachment_id: AttachmentId) -> ChildTokens | None:
        assert attachment_id == ATTACHMENT_ID
        return self.tokens

    async def save(self, attachment_id: AttachmentId, tokens: ChildTokens) -> None:
        assert self.is_locked
        await trio.lowlevel.checkpoint()
        if self.is_full:
            raise StorageFull("storage_full", "No room.")
        self.saves += 1
        self.tokens = tokens

    @asynccontextmanager
    async def locked(self, attachment_id: AttachmentId) -> AsyncIterator[None]:
        await trio.lowlevel.checkpoint()
        self.is_locked = True
        yield
        self.is_locked = False


class Child:
    """A child's caller of a scripted server."""

    def __init__(self, caller: Caller, kept: Kept, clock: FakeClock) -> None:
        self.kept = kept
        self.clock = clock
        self.credential = ChildCredential(
            caller.server, ATTACHMENT_ID, FIRST, kept, clock
        )
        self.caller = replace(caller, credential=self.credential)


async def child(
    calling: Callers, server: ScriptedServer, clock: FakeClock, kept: Kept | None = None
) -> Child:
    return Child(await calling(server), kept or Kept(), clock)


def bearers(server: ScriptedServer) -> list[str | None]:
    """Which token each request showed; None for a renewal."""
    return [each.headers.get("authorization") for each in server.requests]


async def test_a_token_that_holds_is_used_as_it_is(
    calling: Callers, fake_clock: FakeClock
) -> None:
    server = ScriptedServer(said(HELLO))
    made = await child(calling, server, fake_clock)
    await api.hello(made.caller)

    assert bearers(server) == ["Bearer access-1"]


@pytest.mark.parametrize("later_s", [3301.0, 3600.0, 3660.0])
async def test_a_token_about_to_end_is_renewed_and_saved_first(
    calling: Callers, fake_clock: FakeClock, later_s: float
) -> None:
    server = ScriptedServer(said(GRANT), said(HELLO))
    made = await child(calling, server, fake_clock)
    fake_clock.advance(later_s)
    await api.hello(made.caller)

    assert bearers(server) == [None, "Bearer access-2"]
    assert server.requests[0].content == (
        b"grant_type=refresh_token&refresh_token=refresh-1&client_id=agentworks-cli"
    )
    assert made.kept.tokens == ChildTokens(
        "conn-1", "access-2", "refresh-2", fake_clock.wall() + 3600
    )


async def test_a_refused_token_is_renewed_once_and_the_call_repeated(
    calling: Callers, fake_clock: FakeClock
) -> None:
    server = ScriptedServer(refused(401, "invalid_token"), said(GRANT), said(HELLO))
    made = await child(calling, server, fake_clock)
    await api.hello(made.caller)

    assert bearers(server) == ["Bearer access-1", None, "Bearer access-2"]


async def test_a_token_refused_again_after_its_renewal_is_refused(
    calling: Callers, fake_clock: FakeClock
) -> None:
    server = ScriptedServer(
        refused(401, "invalid_token"), said(GRANT), refused(401, "invalid_token")
    )
    made = await child(calling, server, fake_clock)

    with pytest.raises(Refused) as caught:
        await api.hello(made.caller)
    assert caught.value.status == 401
    assert len(server.requests) == 3


async def test_a_stream_whose_token_was_refused_opens_with_a_renewed_one(
    calling: Callers, fake_clock: FakeClock
) -> None:
    server = ScriptedServer(refused(401, "invalid_token"), said(GRANT), stream([]))
    made = await child(calling, server, fake_clock)
    sender, receiver = trio.open_memory_channel[StreamEvent](9)
    with pytest.raises(Unavailable, match="ended the stream"):
        await read_stream(
            made.caller,
            StreamPlace(ATTACHMENT_ID),
            sender,
            open_log(StringIO(), fake_clock),
        )

    assert isinstance(receiver.receive_nowait(), Opened)
    assert bearers(server) == ["Bearer access-1", None, "Bearer access-2"]


async def test_many_callers_share_one_renewal(
    calling: Callers, fake_clock: FakeClock
) -> None:
    server = ScriptedServer(said(GRANT), said(HELLO))
    made = await child(calling, server, fake_clock)
    fake_clock.advance(4000)
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(api.hello, made.caller)

    assert bearers(server).count(None) == 1
    assert made.kept.saves == 1


async def test_what_another_process_renewed_is_taken_over(
    calling: Callers, fake_clock: FakeClock
) -> None:
    newer = replace(FIRST, access_token="access-9")
    server = ScriptedServer(refused(401, "invalid_token"), said(HELLO))
    made = await child(calling, server, fake_clock, Kept(newer))
    await api.hello(made.caller)

    assert bearers(server) == ["Bearer access-1", "Bearer access-9"]


async def test_a_refused_renewal_is_final_for_every_later_call(
    calling: Callers, fake_clock: FakeClock
) -> None:
    server = ScriptedServer(
        refused(401, "invalid_token"),
        said({"error": "invalid_grant"}, 400),
        refused(401, "invalid_token"),
    )
    made = await child(calling, server, fake_clock)
    for _ in range(3):
        with pytest.raises(Refused, match="ended or was revoked") as caught:
            await api.hello(made.caller)
        assert caught.value.code == "token_refused"
        assert caught.value.status == 401

    assert bearers(server).count(None) == 1


@pytest.mark.parametrize(
    "script",
    [httpx.ConnectError("down"), httpx.ReadError("reset"), refused(503, "stopping")],
)
async def test_a_renewal_that_fails_early_leaves_the_old_token_in_use(
    calling: Callers, fake_clock: FakeClock, script: Answer | Exception
) -> None:
    """And is not tried again on every call, which would slow each of them."""
    server = ScriptedServer(script, said(HELLO))
    made = await child(calling, server, fake_clock)
    fake_clock.advance(3400)
    await api.hello(made.caller)
    await api.hello(made.caller)
    assert bearers(server) == [None, "Bearer access-1", "Bearer access-1"]

    fake_clock.advance(60)
    server.answers = [said(GRANT), said(HELLO)]
    await api.hello(made.caller)
    assert bearers(server)[3:] == [None, "Bearer access-2"]


async def test_a_renewal_that_fails_late_is_unavailable(
    calling: Callers, fake_clock: FakeClock
) -> None:
    server = ScriptedServer(httpx.ConnectError("down"))
    made = await child(calling, server, fake_clock)
    fake_clock.advance(4000)

    with pytest.raises(Unavailable):
        await api.hello(made.caller)


@pytest.mark.parametrize(
    "answer",
    [
        refused(404, "not_found"),
        Answer(400, {}, [b"<html>a proxy's page"]),
        Answer(403, {}, [b"<html>a proxy's page"]),
    ],
    ids=["404", "a page with 400", "a page with 403"],
)
async def test_a_renewal_answered_by_something_else_is_not_final(
    calling: Callers, fake_clock: FakeClock, answer: Answer
) -> None:
    server = ScriptedServer(answer)
    made = await child(calling, server, fake_clock)
    fake_clock.advance(4000)
    with pytest.raises(Invalid):
        await api.hello(made.caller)

    server.answers = [said(GRANT), said(HELLO)]
    await api.hello(made.caller)
    assert made.kept.saves == 1


async def test_tokens_that_could_not_be_saved_are_not_used(
    calling: Callers, fake_clock: FakeClock
) -> None:
    server = ScriptedServer(said(GRANT), said(HELLO))
    made = await child(calling, server, fake_clock)
    made.kept.is_full = True
    fake_clock.advance(4000)

    with pytest.raises(StorageFull):
        await api.hello(made.caller)
    assert bearers(server) == [None]


async def test_tokens_that_found_no_room_are_saved_and_used_later(
    calling: Callers, fake_clock: FakeClock
) -> None:
    server = ScriptedServer(said(GRANT), said(HELLO))
    made = await child(calling, server, fake_clock)
    made.kept.is_full = True
    fake_clock.advance(4000)
    with pytest.raises(StorageFull):
        await api.hello(made.caller)
    made.kept.is_full = False
    await api.hello(made.caller)

    assert bearers(server) == [None, f"Bearer {GRANT['access_token']}"]
    assert made.kept.saves == 1


async def test_a_cancelled_renewal_is_still_saved(
    calling: Callers, fake_clock: FakeClock, autojump_clock: trio.testing.MockClock
) -> None:
    server = ScriptedServer(said(GRANT))
    server.delay_s = 3.0
    made = await child(calling, server, fake_clock)
    fake_clock.advance(4000)
    with trio.move_on_after(1.0) as scope:
        await api.hello(made.caller)

    assert scope.cancelled_caught
    assert made.kept.saves == 1
    assert bearers(server)[0] is None


async def test_a_renewal_that_hangs_ends_after_10_seconds(
    calling: Callers, fake_clock: FakeClock, autojump_clock: trio.testing.MockClock
) -> None:
    server = ScriptedServer(Answer(200, {}, [HANG]))
    made = await child(calling, server, fake_clock)
    fake_clock.advance(4000)

    with pytest.raises(Unavailable):
        await api.hello(made.caller)
    assert trio.current_time() == 10


async def test_a_fixed_token_cannot_be_renewed() -> None:
    token = FixedToken("cnry-parent")

    assert await token.token() == "cnry-parent"
    with pytest.raises(Refused, match="login") as caught:
        await token.renewed("cnry-parent")
    assert caught.value.status == 401


async def test_a_token_that_was_replaced_in_its_file_is_read_anew() -> None:
    written = ["first", "second", "second"]
    parent = ReadToken(lambda: written.pop(0))

    assert await parent.token() == "first"
    assert await parent.renewed("first") == "second"
    assert await parent.renewed("first") == "second"
    assert await parent.token() == "second"
    with pytest.raises(Refused, match="no longer valid") as refusal:
        await parent.renewed("second")
    assert refusal.value.status == 401
