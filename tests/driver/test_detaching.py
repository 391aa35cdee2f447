"""A detach reaches the server, however long something stands in between."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from bridge.core.effects import SaveForeignReceipt
from bridge.core.events import Detach
from bridge.core.ids import MessageId
from bridge.core.records import AttachmentState, DeliveryState, Receipt
from bridge.driver import stepping, table
from bridge.errors import Refused
from tests.driver.virtual import VirtualClock, attached, streaming, virtual_bridge
from tests.fakes.routed_server import RoutedServer
from tests.fakes.scripted_server import Answer, refused, said

PAGE = [b"<html>no"]


class Missing:
    """The login in a file that is read anew for each use."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read

    async def token(self) -> str:
        return self._read()

    async def renewed(self, refused: str) -> str:
        return self._read()


@pytest.mark.parametrize("status", [302, 400, 403, 404, 405, 410, 500, 502, 503])
async def test_a_detach_is_told_again_until_the_server_itself_has_answered(
    autojump_clock: MockClock, status: int
) -> None:
    def answer(_: httpx.Request) -> Answer:
        return Answer(status, {}, PAGE) if trio.current_time() < 60 else said({})

    server = RoutedServer(stream=lambda _: streaming())
    server.scripts["att-1"] = answer
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await stepping.step(bridge, queue, Detach(bridge.clock.wall()))
        await trio.sleep(50)
        was_early = queue.is_forgotten
        await trio.sleep(60)

        assert (was_early, queue.is_forgotten) == (False, True)
        assert server.times("att-1")[-1] >= 60
        assert len(server.times("att-1")) < 30


async def test_a_lease_that_the_server_does_not_know_is_detached(
    autojump_clock: MockClock,
) -> None:
    server = RoutedServer(stream=lambda _: streaming())
    server.scripts["att-1"] = lambda _: refused(404, "not_found")
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await stepping.step(bridge, queue, Detach(bridge.clock.wall()))
        await trio.sleep(1)

        assert queue.is_forgotten
        assert len(server.times("att-1")) == 1


async def test_what_a_detach_could_not_tell_is_told_by_the_next(
    autojump_clock: MockClock,
) -> None:
    # The name moved to another computer while this one could not be heard.
    server = RoutedServer(stream=lambda _: streaming())
    server.scripts["att-1"] = lambda _: refused(410, "gone", state="replaced")
    server.scripts["receipts"] = lambda _: refused(410, "gone", state="replaced")
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        shown = Receipt(queue.record.attachment_id, MessageId("msg-1"), "offered", 1.0)
        await queue.commit([SaveForeignReceipt(shown)])
        await stepping.step(bridge, queue, Detach(bridge.clock.wall()))
        await trio.sleep(1)

        assert queue.record.state is AttachmentState.REPLACED
        assert queue.unsent_receipts() == [shown]
        assert not queue.in_state(DeliveryState.PENDING)
        assert table.rows(bridge) == ()


async def test_a_login_that_the_server_refuses_is_no_word_about_the_lease(
    autojump_clock: MockClock,
) -> None:
    server = RoutedServer(stream=lambda _: streaming())
    server.scripts["att-1"] = lambda _: (
        refused(401, "invalid_token") if trio.current_time() < 60 else said({})
    )
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        await stepping.step(bridge, queue, Detach(bridge.clock.wall()))
        await trio.sleep(50)
        was_early = queue.is_forgotten
        await trio.sleep(60)

        assert (was_early, queue.is_forgotten) == (False, True)
        assert server.times("att-1")[-1] >= 60


async def test_a_login_that_is_missing_is_no_word_about_the_lease(
    autojump_clock: MockClock,
) -> None:
    def read() -> str:
        if trio.current_time() < 60:
            raise Refused("not_signed_in", "parent.token is missing.")
        return "parent"

    server = RoutedServer(stream=lambda _: streaming())
    server.scripts["att-1"] = lambda asked: (
        said({})
        if asked.headers["authorization"] == "Bearer parent"
        else refused(401, "invalid_token")
    )
    async with virtual_bridge(server, VirtualClock()) as bridge:
        queue = await attached(bridge)
        bridge.link.parent = replace(bridge.link.parent, credential=Missing(read))
        await stepping.step(bridge, queue, Detach(bridge.clock.wall()))
        await trio.sleep(50)
        was_early = queue.is_forgotten
        await trio.sleep(60)

        assert (was_early, queue.is_forgotten) == (False, True)
