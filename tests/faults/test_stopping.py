"""A bridge that is told to end, more than once or rudely."""

from __future__ import annotations

import os
import signal

import pytest
import trio
import trio.lowlevel

from tests.journeys.rig.computer import Agent, Computer
from tests.journeys.rig.running import Running

pytestmark = [pytest.mark.crash, pytest.mark.slow]

END_S = 5.0


async def queue_two(computer: Computer) -> tuple[Running, Agent, Agent]:
    """A bridge that keeps two messages for a server that has gone."""
    server = await computer.start_server()
    daemon = await computer.start_bridge_alone()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    await server.kill()
    for number in (1, 2):
        sent = await alice.send("bob", f"number {number}.", f"queued-{number}")
        assert sent["status"] == "queued"
    return daemon, alice, bob


async def hear_two(computer: Computer, bob: Agent) -> None:
    """With server and bridge there again, both come, once."""
    await computer.start_server()
    await computer.start_bridge_alone()
    offers = ""
    while "number 2." not in offers:
        offers += await bob.mail()
    assert (offers.count("number 1."), offers.count("number 2.")) == (1, 1)
    assert await bob.stop() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_bridge_told_to_end_three_times_ends_in_order_and_keeps_its_outbox(
    computer: Computer, number: signal.Signals
) -> None:
    daemon, alice, bob = await queue_two(computer)
    begun = trio.current_time()
    for _ in range(3):
        os.kill(daemon.pid, number)
    code = await daemon.end()

    assert code == 0
    assert trio.current_time() - begun < END_S
    assert "Traceback" not in daemon.said
    assert not computer.paths.socket.exists()
    assert await alice.stop() == ""
    await hear_two(computer, bob)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_bridge_that_is_told_to_end_without_a_pause_ends_in_order(
    computer: Computer, number: signal.Signals
) -> None:
    """Again and again until it has gone: each moment of its closing hears one."""
    daemon = await computer.start_bridge()
    told = 0
    while daemon.ended is None:
        os.kill(daemon.pid, number)
        told += 1
        await trio.lowlevel.checkpoint()

    assert daemon.ended == 0, daemon.said
    assert "Traceback" not in daemon.said
    assert told > 3


async def test_a_bridge_that_its_watchdog_ends_loses_nothing_and_leaves_no_core(
    computer: Computer,
) -> None:
    daemon, _, bob = await queue_two(computer)
    os.kill(daemon.pid, signal.SIGABRT)

    assert await daemon.end() == -signal.SIGABRT
    assert list(computer.paths.run.glob("core*")) == []
    await hear_two(computer, bob)
