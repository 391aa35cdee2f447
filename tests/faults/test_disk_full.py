"""A disk without room, or one that may not be written: what is said, what is kept."""

from __future__ import annotations

import re

import pytest

from tests.faults.own_mounts import SmallDisk, is_done_elsewhere
from tests.journeys.rig.computer import Agent, Computer
from tests.journeys.rig.puppets import Denied
from tests.journeys.rig.running import Running
from tests.journeys.rig.waiting import until_some

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(400)]

DISK_BYTES = 4 * 1024 * 1024
STEP_BYTES = 32 * 1024
ENOUGH_BYTES = 160 * 1024
MOST_SENDS = 200
SAID = re.compile(r"^(number \d+ with \d+\.|before\.|with room again\.)", re.MULTILINE)
# A server without room is asked again after a minute.
AGAIN_S = 90.0


async def send_until_denied(alice: Agent, size: int) -> tuple[list[str], Denied]:
    """What was accepted while room was left, and the first no."""
    accepted: list[str] = []
    for number in range(MOST_SENDS):
        text = f"number {number} with {size}."
        try:
            await alice.send("bob", text + "x" * size, f"try-{number}-{size}")
        except Denied as denied:
            return accepted, denied
        accepted.append(text)
    raise AssertionError("the disk never became full")


def one_sentence(daemon: Running) -> str:
    """The daemon's last word: a refusal, and nothing that only we understand."""
    assert "Traceback" not in daemon.said
    return daemon.said.strip().splitlines()[-1].removeprefix("Error: ")


@pytest.mark.parametrize("is_servers", [False, True])
async def test_a_full_disk_refuses_the_sender_and_passes(
    computer: Computer, request: pytest.FixtureRequest, is_servers: bool
) -> None:
    """The daemon lives, reads go on, and with room again nothing is missing."""
    if is_done_elsewhere(request):
        return
    computer.install()
    disk = SmallDisk(computer.state, DISK_BYTES, is_servers=is_servers)
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    await alice.send("bob", "before.")
    await computer.until_row("bob", pending=1)
    disk.fill(leave=ENOUGH_BYTES)
    accepted: list[str] = []
    for size in (5000, 0):
        some, denied = await send_until_denied(alice, size)
        accepted += some
        assert (denied.code, denied.exit) == ("storage_full", 75)
        disk.fill()
    status = await computer.person("status")
    assert any("no room to save" in each for each in status["warnings"])
    assert (await bob.verb("read"))["messages"]
    assert await bob.stop() == ""

    disk.make_room()
    last = "with room again."
    await send_when_there_is_room(alice, last)
    offers = ""
    while last not in offers:
        offers += await until_some(bob.stop, "mail for bob", AGAIN_S)

    shown = SAID.findall(offers)
    assert shown == ["before.", *accepted, last]
    assert (await computer.person("status"))["warnings"] == []
    assert daemon.ended is None
    assert "Traceback" not in daemon.said


async def send_when_there_is_room(alice: Agent, text: str) -> None:
    """A submission that was refused for want of room may be said again."""

    async def sent() -> bool:
        try:
            await alice.send("bob", text, "again")
        except Denied as denied:
            if denied.code != "storage_full":
                raise
            return False
        return True

    await until_some(sent, "a yes after there was room")


async def test_a_start_without_room_is_refused_in_a_sentence_or_serves(
    computer: Computer, request: pytest.FixtureRequest
) -> None:
    """However little room there is; with room all that was accepted is there."""
    if is_done_elsewhere(request):
        return
    computer.install()
    disk = SmallDisk(computer.state, DISK_BYTES)
    first = await computer.start_bridge()
    alice = await computer.settled("alice")
    await computer.settled("bob")
    await alice.send("bob", "kept.")
    await computer.until_row("bob", pending=1)
    await first.stop()
    refused = []
    for room in range(0, ENOUGH_BYTES, STEP_BYTES):
        disk.fill(leave=room)
        daemon = await computer.launch_bridge()
        is_serving = await serves(computer, daemon)
        if not is_serving:
            refused.append(await daemon.end())
            assert "room" in one_sentence(daemon)
        await daemon.kill()
        disk.make_room()

    await computer.start_bridge()
    await computer.until_row("bob", pending=1)
    assert refused
    assert set(refused) == {75}


async def test_a_first_start_without_room_is_refused_in_a_sentence(
    computer: Computer, request: pytest.FixtureRequest
) -> None:
    if is_done_elsewhere(request):
        return
    computer.install()
    disk = SmallDisk(computer.state, DISK_BYTES)
    refused = []
    for room in range(0, ENOUGH_BYTES, STEP_BYTES):
        disk.fill(leave=room)
        daemon = await computer.launch_bridge()
        if not await serves(computer, daemon):
            refused.append(await daemon.end())
            assert "room" in one_sentence(daemon)
        await daemon.kill()
        disk.make_room()
        disk.forget()

    await computer.start_bridge()
    assert refused
    assert set(refused) == {75}


async def serves(computer: Computer, daemon: Running) -> bool:
    async def is_decided() -> bool:
        return daemon.ended is not None or computer.answers()

    await until_some(is_decided, "an answer or an end")
    return daemon.ended is None


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_read_only_state_folder_is_refused_and_hooks_stay_silent(
    computer: Computer, request: pytest.FixtureRequest, is_new: bool
) -> None:
    """A mount, since root passes through every mode."""
    if is_done_elsewhere(request):
        return
    computer.install()
    disk = SmallDisk(computer.state, DISK_BYTES)
    agent = await computer.agent()
    if not is_new:
        await (await computer.start_bridge()).stop()
    disk.make_read_only()

    refused = await computer.launch_bridge()

    assert await refused.end() == 78
    said = one_sentence(refused)
    assert "read-only" in said.lower()
    assert str(computer.state) in said
    assert await agent.stop() == ""
    disk.make_writable()
    await computer.start_bridge()
