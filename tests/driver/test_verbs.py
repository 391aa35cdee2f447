"""What an agent is told of a message that it sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.core.events import SessionEnded
from bridge.core.records import OfferOutcome
from bridge.driver import offering, stepping, verbs
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import Unavailable
from tests.driver.desk import OCCASION, Route
from tests.driver.test_attaching import attach, bodies, open_house, until
from tests.fakes.message_server import Served


async def until_told(bridge: Bridge, queue: AttachmentQueue, word: str) -> verbs.Facts:
    """What is told of submission `one`, once it says this word."""
    found: verbs.Facts = {}
    for _ in range(1000):
        found = await verbs.status(bridge, queue, "one")
        if word in found["note"]:
            break
        queue.wake()
    assert word in found["note"]
    return found


async def test_a_sender_sees_each_sign_of_its_message(tmp_path: Path) -> None:
    async with open_house(tmp_path) as (bridge, _):
        alice = await attach(bridge, "zero", "alice")
        bob = await attach(bridge, "one", "bob")
        sent = await verbs.send(bridge, alice, "agent:bob", "hello", "one")
        stored = await until_told(bridge, alice, "The server has it")
        await until(lambda: bodies(bob) == ["hello"])

        await offering.make_offer(
            bob, OCCASION, bridge.clock, Route(OfferOutcome.UNKNOWN).emit
        )
        unsure = await until_told(bridge, alice, "may or may not have reached bob")
        await verbs.ack(bridge, bob, sent["message_id"], "admitted")
        admitted = await until_told(bridge, alice, "bob has it (admitted at 2026-")
        await verbs.ack(bridge, bob, sent["message_id"], "processed")
        processed = await until_told(bridge, alice, "bob has dealt with it")

        signs = [found["delivery"] for found in (stored, unsure, admitted, processed)]
        assert signs == ["stored", "stored", "admitted", "processed"]
        assert unsure["observed"] == "unsure"
        assert processed["recipient"]["offline_since"] is None


async def test_a_sender_sees_since_when_its_recipient_is_offline(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, _):
        alice = await attach(bridge, "zero", "alice")
        bob = await attach(bridge, "one", "bob")
        await stepping.step(bridge, bob, SessionEnded(bridge.clock.wall()))
        await verbs.send(bridge, alice, "agent:bob", "hello", "one")

        found = await until_told(bridge, alice, "bob is offline since 2026-")

        assert found["recipient"]["offline_since"] == "2026-09-21T14:13:20Z"


async def test_without_the_server_a_sender_is_told_what_is_known_here(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as (bridge, server):
        alice = await attach(bridge, "zero", "alice")
        await attach(bridge, "one", "bob")
        sent = await verbs.send(bridge, alice, "agent:bob", "hello", "one")
        await stopped(server)

        found = await verbs.status(bridge, alice, "one")
        with pytest.raises(Unavailable):
            await verbs.status(bridge, alice, "another")

        assert found["message_id"] == sent["message_id"]
        assert found["status"] == "accepted"
        assert "whether the message was read is not known" in found["note"]


async def stopped(server: Served) -> None:
    server.stop()
    await until(lambda: not (server.folder / "server.sock").exists())
