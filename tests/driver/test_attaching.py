"""Attach, move and detach with a real server: nothing is lost, nothing repeated."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from bridge.core.effects import SaveSubmission
from bridge.core.events import SessionEnded
from bridge.core.ids import AttachmentId, SubmissionId
from bridge.core.records import (
    AttachmentState,
    DeliveryState,
    OfferOutcome,
    SubmissionState,
)
from bridge.core.tokens import ChildTokens
from bridge.driver import attaching, offering, outgoing, stepping, table, verbs
from bridge.driver.attaching import Wish
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import Refused
from bridge.providers import process
from bridge.server.limits import Settings
from bridge.store.leases import Leases
from tests.driver.desk import OCCASION, Route, open_bridge
from tests.fakes.clock import FakeClock
from tests.fakes.message_server import Served, good, served

NET_S = 10.0


@asynccontextmanager
async def open_house(folder: Path) -> AsyncIterator[tuple[Bridge, Served]]:
    """A bridge and its server, in this process."""
    async with (
        served(folder, Settings(), FakeClock()) as server,
        open_bridge(folder, served=server) as bridge,
    ):
        yield bridge, server


def wish(session_id: str, name: str) -> Wish:
    facts = process.facts_of(os.getpid())
    assert facts is not None
    return Wish("script", session_id, process.key_of(facts), name)


async def attach(bridge: Bridge, session_id: str, name: str) -> AttachmentQueue:
    done = await attaching.attach(bridge, wish(session_id, name))
    queue = bridge.roster.get(done.record.attachment_id)
    assert queue is not None
    return queue


async def until(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(NET_S):
        while not is_so():  # noqa: ASYNC110 - many things change it
            await trio.sleep(0.01)


async def tell(server: Served, name: str, text: str) -> None:
    """The person writes to a name."""
    good(await server.call("send", target=f"agent:{name}", message=text))


def bodies(queue: AttachmentQueue) -> list[str | None]:
    return [row.body for row in queue.in_state(DeliveryState.PENDING)]


async def test_a_detach_first_tells_what_was_offered(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, server):
        queue = await attach(bridge, "one", "bob")
        await tell(server, "bob", "seen")
        await until(lambda: bodies(queue) == ["seen"])
        queue.close_stream()
        route = Route(OfferOutcome.EMITTED)
        await offering.make_offer(queue, OCCASION, bridge.clock, route.emit)
        await attaching.detach(bridge, queue)
        await until(lambda: not len(bridge.roster))

        after = await attach(bridge, "two", "bob")
        await tell(server, "bob", "not seen")
        await until(lambda: "not seen" in bodies(after))

        assert bodies(after) == ["not seen"]


async def test_a_detach_waits_for_the_offer_that_is_out(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, server):
        queue = await attach(bridge, "one", "bob")
        await tell(server, "bob", "seen")
        await until(lambda: bodies(queue) == ["seen"])

        async def emit(offer_id: str, text: str) -> OfferOutcome:
            await attaching.detach(bridge, queue)
            await trio.sleep(0.3)
            return OfferOutcome.EMITTED

        await offering.make_offer(queue, OCCASION, bridge.clock, emit)
        await until(lambda: not len(bridge.roster))
        after = await attach(bridge, "two", "bob")
        await tell(server, "bob", "not seen")
        await until(lambda: "not seen" in bodies(after))

        assert bodies(after) == ["not seen"]


async def test_what_an_older_session_had_to_send_goes_on_in_the_next(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, server):
        await attach(bridge, "zero", "alice")
        before = await attach(bridge, "one", "bob")
        await tell(server, "bob", "for you")
        await until(lambda: bodies(before) == ["for you"])
        before.close_stream()
        before.stream_trouble = "server_unreachable"
        (message,) = before.deliveries.values()
        await verbs.ack(bridge, before, message.message_id, "processed")
        kept = await outgoing.submit(bridge, before, "hello", target="agent:alice")
        assert kept.state is SubmissionState.QUEUED
        await stepping.step(bridge, before, SessionEnded(bridge.clock.wall()))
        await until_moved(bridge, "two", "bob")
        after = bridge.roster.named("bob")
        assert after is not None
        assert after is not before

        def is_accepted() -> bool:
            row = after.submissions.get(kept.submission_id)
            return row is not None and row.state is SubmissionState.ACCEPTED

        await until(is_accepted)
        await until(lambda: not after.unsent_receipts())
        assert before.record.state is AttachmentState.REPLACED
        assert before.unsent_receipts() == []
        assert dict(before.submissions) == {}
        await until(lambda: after.stream_opened_at is not None)
        assert bodies(after) == []


async def until_moved(bridge: Bridge, session_id: str, name: str) -> None:
    """Attach as soon as the server was told that the old session is offline."""
    with trio.fail_after(NET_S):
        while True:
            try:
                await attach(bridge, session_id, name)
            except Refused:
                await trio.sleep(0.01)
            else:
                return


async def test_a_name_that_moves_away_and_back_brings_its_mail(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, server):
        first = await attach(bridge, "one", "bob")
        await tell(server, "bob", "waits")
        await until(lambda: bodies(first) == ["waits"])
        other = await attach(bridge, "one", "carol")
        assert first.record.state is AttachmentState.REPLACED
        assert other.is_live

        back = await attach(bridge, "one", "bob")
        await until(lambda: bodies(back) == ["waits"])

        assert other.record.state is AttachmentState.REPLACED
        assert bodies(first) == []
        assert await bridge.leases.read(back.record.attachment_id) is not None


async def test_the_same_session_attached_again_keeps_lease_and_mail(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, server):
        first = await attach(bridge, "one", "bob")
        await tell(server, "bob", "waits")
        await until(lambda: bodies(first) == ["waits"])
        for _ in range(5):
            assert await attach(bridge, "one", "bob") is first
        await tell(server, "bob", "and more")
        await until(lambda: bodies(first) == ["waits", "and more"])

        assert first.is_live
        assert len(bridge.roster) == 1


async def test_tokens_that_are_lost_are_derived_anew_by_the_person(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, server):
        queue = await attach(bridge, "one", "bob")
        await tell(server, "bob", "waits")
        await until(lambda: bodies(queue) == ["waits"])
        await bridge.leases.erase(queue.record.attachment_id)
        again = await attach(bridge, "one", "bob")
        await tell(server, "bob", "and more")
        await until(lambda: bodies(again) == ["waits", "and more"])

        assert again is queue
        assert again.is_live


async def test_a_session_has_one_name_whatever_process_it_was_in(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, _):
        first = await attach(bridge, "one", "bob")
        await stepping.step(bridge, first, SessionEnded(bridge.clock.wall()))
        other = await attach(bridge, "one", "carol")

        assert first.record.state is AttachmentState.REPLACED
        assert bridge.roster.known("script", "one") is other


async def test_tokens_that_others_could_read_end_no_lease(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, server):
        queue = await attach(bridge, "one", "bob")
        await tell(server, "bob", "waits")
        await until(lambda: bodies(queue) == ["waits"])
        file = bridge.paths.state / "leases" / f"{queue.record.attachment_id}.json"
        file.chmod(0o644)
        bridge.link.forget(queue.record.attachment_id)
        queue.close_stream()
        stepping.reopen_stream(bridge, queue)
        await until(lambda: "connection" in table.row(bridge, queue).why)

        assert queue.record.state is AttachmentState.OFFLINE
        assert bodies(queue) == ["waits"]
        again = await attach(bridge, "one", "bob")
        assert again is queue
        assert again.is_live
        assert "connection" not in table.row(bridge, queue).why


class ErasedWhenRead(Leases):
    """Lease files of which another task erases each as soon as it was read."""

    async def read(self, attachment_id: AttachmentId) -> ChildTokens | None:
        """See Leases."""
        tokens = await super().read(attachment_id)
        await self.erase(attachment_id)
        return tokens


async def test_tokens_that_are_erased_during_an_attach_are_kept(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, _):
        queue = await attach(bridge, "one", "bob")
        attachment_id, usual = queue.record.attachment_id, bridge.leases
        held = await usual.read(attachment_id)
        bridge.leases = ErasedWhenRead(bridge.paths.state / "leases")
        await attach(bridge, "one", "bob")
        bridge.leases = usual

        assert await usual.read(attachment_id) == held


async def test_a_name_whose_session_ended_unheard_by_the_server_is_free(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, server):
        queue = await attach(bridge, "one", "bob")
        await server.wait_until_connected("bob", is_connected=True)
        async with queue.turn:  # killed, or cut off, before it could tell
            await queue.step(SessionEnded(bridge.clock.wall(), "exit"))
        queue.close_stream()

        after = await attach(bridge, "two", "bob")

        assert after.record.state is AttachmentState.ATTACHED
        assert queue.record.state is AttachmentState.REPLACED


async def test_a_detach_lists_what_was_refused_and_never_told(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, _):
        queue = await attach(bridge, "one", "bob")
        for target, id_ in (("agent:nobody", "told"), ("agent:nowhere", "untold")):
            await outgoing.submit(
                bridge, queue, "hello", target=target, submission_id=id_
            )
        rows = queue.submissions
        assert {row.state for row in rows.values()} == {SubmissionState.REFUSED}
        async with queue.turn:
            told = rows[SubmissionId("told")]
            await queue.commit([SaveSubmission(replace(told, told=True))])

        assert await attaching.detach(bridge, queue) == ("untold",)


@pytest.mark.parametrize("is_first", [True, False])
async def test_what_an_agent_says_while_it_is_detached_is_refused(
    tmp_path: Path, is_first: bool
) -> None:
    said: list[object] = []
    async with open_house(tmp_path) as (bridge, _), trio.open_nursery() as nursery:
        queue = await attach(bridge, "one", "bob")
        queue.stream_trouble = "down"  # what is kept is answered at once
        queue.close_stream()

        async def note(deed: Callable[[], Awaitable[object]]) -> None:
            try:
                said.append(await deed())
            except Refused as error:
                said.append(error.code)

        deeds: list[Callable[[], Awaitable[object]]] = [
            partial(verbs.send, bridge, queue, "agent:bob", "hello", "first"),
            partial(verbs.ack, bridge, queue, "msg-1", "processed"),
            partial(attaching.detach, bridge, queue),
        ]
        async with queue.turn:
            for deed in deeds if is_first else reversed(deeds):
                nursery.start_soon(note, deed)
                await trio.testing.wait_all_tasks_blocked(0.01)

    # Either it was kept, and the detach lists it; or it was refused.
    if is_first:
        assert said[-1] == ("first",)
        assert "detached" not in said
    else:
        assert sorted(map(str, said)) == ["()", "detached", "detached"]
