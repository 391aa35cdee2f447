"""What survives the end of a process: the daemon's, an agent's, the server's."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.journeys.rig.computer import Agent, Computer
from tests.journeys.rig.puppets import Denied
from tests.journeys.rig.waiting import until_some

MESSAGE_ID = re.compile(r"msg-[0-9a-f-]{36}")


async def until_server(agent: Agent, word: str) -> None:
    """Wait until its attachment says this of the server: `connected` or a trouble."""

    async def look() -> bool:
        said = (await agent.verb("message_status", id=""))["server"]
        return bool((said == "connected") is (word == "connected"))

    await until_some(look, f"{agent.name}'s server {word}")


async def until_accepted(agent: Agent, submission_id: str) -> dict[str, Any]:
    """Wait until the server has a submission; what it says of it."""

    async def look() -> dict[str, Any]:
        known = await agent.verb("message_status", id=submission_id)
        return dict(known) if "message_id" in known else {}

    return await until_some(look, f"{submission_id} at the server")


async def test_a_daemon_killed_with_an_offer_out_repeats_nothing(
    computer: Computer,
) -> None:
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    sent = await alice.send("bob", "seen or not?")
    await computer.until_row("bob", pending=1)
    assert "seen or not?" in await bob.hold()

    await daemon.kill()
    await computer.start_bridge()
    await alice.send("bob", "after the crash")
    await computer.until_row("bob", pending=1, unacknowledged=1)
    offer = await bob.mail()

    assert "seen or not?" not in offer
    assert f"{sent['message_id']} may not have reached you" in offer
    assert "after the crash" in offer
    await alice.send("bob", "and later")
    assert sent["message_id"] not in await bob.mail()
    page = await bob.verb("read")
    assert "seen or not?" in [row["message"] for row in page["messages"]]


async def test_a_restart_restores_live_processes_and_not_dead_ones(
    computer: Computer,
) -> None:
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    before = await alice.verb("message_status", id="")

    await daemon.kill()
    await bob.process.kill()
    await computer.start_bridge()

    await computer.until_row("alice", state="attached")
    await computer.until_row("bob", state="offline")
    assert (await alice.verb("message_status", id=""))["attachment_id"] == before[
        "attachment_id"
    ]
    # Another process is not bob, whatever it asks.
    stranger = await computer.agent()
    assert await stranger.stop() == ""
    with pytest.raises(Denied):
        await stranger.verb("peers")


async def test_stop_and_start_keep_identity_and_mail(computer: Computer) -> None:
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    before = await bob.verb("message_status", id="")
    await alice.send("bob", "before the stop")
    await computer.until_row("bob", pending=1)

    await computer.person("stop")
    assert await daemon.end() == 0
    with pytest.raises(Denied) as denied:
        await bob.verb("peers")
    assert await bob.stop() == ""
    await computer.start_bridge()

    assert denied.value.code == "bridge_not_running"
    assert denied.value.exit == 75
    after = await bob.verb("message_status", id="")
    assert (after["name"], after["attachment_id"]) == ("bob", before["attachment_id"])
    offer = await bob.mail()
    assert "before the stop" in offer
    assert "to AgentWorks as bob" not in offer
    assert await bob.stop() == ""


async def test_a_stop_with_an_offer_out_ends_in_order_and_repeats_nothing(
    computer: Computer,
) -> None:
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    sent = await alice.send("bob", "on its way out")
    await computer.until_row("bob", pending=1)
    assert "on its way out" in await bob.hold()

    assert await daemon.stop() == 0
    await computer.start_bridge()
    offer = await bob.mail()

    assert f"{sent['message_id']} may not have reached you" in offer
    assert "on its way out" not in offer
    assert await bob.stop() == ""


async def test_what_is_said_while_the_server_is_away_arrives_once(
    computer: Computer,
) -> None:
    server = await computer.start_server()
    await computer.start_bridge_alone()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")

    await server.kill()
    await until_server(alice, "away")
    queued = await alice.send("bob", "said in the dark", "dark-1")
    again = await alice.send("bob", "said in the dark", "dark-1")
    assert queued["status"] == again["status"] == "queued"
    assert queued["submission_id"] == "dark-1"
    await computer.start_server()

    await until_accepted(alice, "dark-1")
    assert (await bob.mail()).count("said in the dark") == 1
    assert await bob.stop() == ""
    page = await bob.verb("read")
    assert [row["message"] for row in page["messages"]] == ["said in the dark"]


async def test_a_crash_while_the_server_is_away_loses_nothing_queued(
    computer: Computer,
) -> None:
    server = await computer.start_server()
    daemon = await computer.start_bridge_alone()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    await server.kill()
    await until_server(alice, "away")
    texts = [f"number {number}" for number in range(1, 6)]
    for text in texts:
        assert (await alice.send("bob", text))["status"] == "queued"

    await daemon.kill()
    await computer.start_server()
    await computer.start_bridge_alone()

    offers = ""
    while texts[-1] not in offers:
        offers += await bob.mail()
    assert re.findall(r"^number \d$", offers, re.MULTILINE) == texts
    assert await bob.stop() == ""


async def test_each_conversation_is_sent_in_the_order_it_was_said(
    computer: Computer,
) -> None:
    server = await computer.start_server()
    await computer.start_bridge_alone()
    alice = await computer.settled("alice")
    others = [await computer.settled(name) for name in ("bob", "carol")]
    await server.kill()
    await until_server(alice, "away")
    for number in range(1, 6):
        for other in others:
            await alice.send(other.name, f"{other.name} {number}")

    await computer.start_server()

    for other in others:
        wanted = [f"{other.name} {number}" for number in range(1, 6)]
        offers = ""
        while wanted[-1] not in offers:
            offers += await other.mail()
        heard = re.findall(rf"^{other.name} \d$", offers, re.MULTILINE)
        assert heard == wanted


async def test_the_person_can_attach_after_the_server_was_restarted(
    computer: Computer,
) -> None:
    server = await computer.start_server()
    await computer.start_bridge_alone()
    alice = await computer.settled("alice")
    await server.kill()
    await computer.start_server()
    await until_server(alice, "connected")

    bob = await computer.settled("bob")

    await alice.send("bob", "are you new here?")
    assert "are you new here?" in await bob.mail()


async def test_a_dead_agents_name_and_mail_wait_for_the_next_attach(
    computer: Computer,
) -> None:
    await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    await alice.send("bob", "here before you died")
    await computer.until_row("bob", pending=1)

    await bob.process.kill()
    await computer.until_row("bob", state="offline")
    sent = await alice.send("bob", "sent to the dead")
    next_bob = await computer.attached("bob")

    assert sent["recipient"]["state"] == "offline"
    assert sent["recipient"]["since"]
    offers = ""
    while "sent to the dead" not in offers:
        offers += await next_bob.mail()
    assert offers.count("here before you died") == 1
    assert offers.count("sent to the dead") == 1
    assert await next_bob.stop() == ""
