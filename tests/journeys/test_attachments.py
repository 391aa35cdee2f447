"""Names: who has one, who may not take it, and what ends it."""

from __future__ import annotations

import json

import pytest

from tests.journeys.rig.computer import Computer
from tests.journeys.rig.puppets import Denied
from tests.journeys.rig.waiting import until_some


async def test_an_unattached_process_gets_nothing_and_may_ask_nothing(
    computer: Computer,
) -> None:
    await computer.start_bridge()
    stranger = await computer.agent()

    assert await stranger.stop() == ""
    with pytest.raises(Denied) as denied:
        await stranger.verb("peers")
    # Nothing of a coding agent is above it, so it is the person; a person has no
    # session of an agent.
    assert denied.value.code == "no_session"


async def test_a_script_may_not_use_what_only_the_person_may(
    computer: Computer,
) -> None:
    daemon = await computer.start_bridge()
    bob = await computer.settled("bob")

    for verb, said in (
        ("stop", {}),
        ("messages_list", {}),
        ("attach", {"name": "evil", "native_pid": 1, "provider": "script"}),
        ("detach", {}),
    ):
        with pytest.raises(Denied) as denied:
            await bob.ask(verb, **said)
        assert denied.value.exit == 3, verb

    assert (await computer.row("bob") or {})["state"] == "attached"
    assert daemon.pid


async def test_a_name_held_by_a_live_process_is_refused_with_who_holds_it(
    computer: Computer,
) -> None:
    await computer.start_bridge()
    bob = await computer.settled("bob")
    other = await computer.agent()

    with pytest.raises(Denied, match="live script") as denied:
        await computer.attach(other, "BOB")

    assert denied.value.code == "name_held"
    assert denied.value.exit == 4
    assert "since 20" in denied.value.text
    assert (await bob.verb("message_status", id=""))["name"] == "bob"


async def test_attaching_the_same_process_again_keeps_its_attachment(
    computer: Computer,
) -> None:
    await computer.start_bridge()
    bob = await computer.settled("bob")
    before = await bob.verb("message_status", id="")

    again = await computer.attach(bob, "")

    assert again["attachment_id"] == before["attachment_id"]
    assert again["name"] == "bob"
    assert await bob.stop() == ""  # no second setup text


async def test_a_replaced_lease_is_ended_whole(computer: Computer) -> None:
    await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    before = (await bob.verb("message_status", id=""))["attachment_id"]
    await alice.send("bob", "to the old name")
    await computer.until_row("bob", pending=1)

    await computer.attach(bob, "robert")

    await computer.until_gone("bob")

    async def is_erased() -> bool:
        return not (computer.paths.leases / f"{before}.json").exists()

    await until_some(is_erased, "no tokens of the old lease")
    offer = await bob.mail()
    assert "to AgentWorks as robert" in offer
    assert "to the old name" not in offer
    sent = await alice.send("bob", "are you still there?")
    assert sent["recipient"]["state"] != "connected"
    await alice.send("robert", "hello again")
    assert "hello again" in await bob.mail()


async def test_a_detach_revokes_the_child_and_removes_the_local_state(
    computer: Computer,
) -> None:
    await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    attachment = (await bob.verb("message_status", id=""))["attachment_id"]
    lease = computer.paths.leases / f"{attachment}.json"
    assert json.loads(lease.read_text())
    await alice.send("bob", "never to be seen here")
    await computer.until_row("bob", pending=1)

    done = await computer.person("detach", name="bob")

    assert done == {"name": "bob", "queued": []}
    await computer.until_gone("bob")
    assert not lease.exists()
    assert await bob.stop() == ""
    with pytest.raises(Denied):
        await bob.verb("peers")
    with pytest.raises(Denied, match="attached as bob"):
        await computer.person("detach", name="bob")
    directory = await computer.person("messages_list")
    assert "bob" in {row["name"] for row in directory["agents"]}
    sent = await alice.send("bob", "is anybody there?")
    assert sent["recipient"]["state"] != "connected"


async def test_a_detach_with_nobody_attached_says_so(computer: Computer) -> None:
    await computer.start_bridge()

    with pytest.raises(Denied, match="nothing to detach"):
        await computer.person("detach")


async def test_the_persons_empty_message_is_told_its_length(
    computer: Computer,
) -> None:
    await computer.start_bridge()

    with pytest.raises(Denied, match="1 to 20,000 characters and this one has 0"):
        await computer.person("messages_send", target="agent:bob", message="")


async def test_a_detach_lists_what_was_never_sent(computer: Computer) -> None:
    server = await computer.start_server()
    await computer.start_bridge_alone()
    alice = await computer.settled("alice")
    await computer.person("messages_register", agent="bob")
    await server.kill()
    await alice.send("bob", "lost with its sender", "never-1")

    done = await computer.person("detach", name="alice")
    await computer.start_server()
    await computer.until_gone("alice")
    assert done == {"name": "alice", "queued": ["never-1"]}
    page = await computer.person("messages_read", agent="bob")
    assert page["messages"] == []
    with pytest.raises(Denied):
        await alice.verb("peers")


async def test_an_expired_token_is_renewed_and_nobody_notices(
    computer: Computer,
) -> None:
    await computer.start_server(access_token_s=1)
    await computer.start_bridge_alone()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    (first, second) = sorted(computer.paths.leases.glob("*.json"))
    before = [first.read_bytes(), second.read_bytes()]

    async def renewed() -> bool:
        said = await alice.send("bob", "still here")
        assert said["status"] == "accepted"
        said = await bob.send("alice", "so am I")
        assert said["status"] == "accepted"
        now = [first.read_bytes(), second.read_bytes()]
        return all(old != new for old, new in zip(before, now, strict=True))

    await until_some(renewed, "new tokens of both")

    await alice.send("bob", "the last one")
    offers = ""
    while "the last one" not in offers:
        offers += await bob.mail()
    assert (await computer.row("bob") or {})["state"] == "attached"


async def test_a_lost_lease_file_needs_only_another_attach(computer: Computer) -> None:
    daemon = await computer.start_bridge()
    alice = await computer.settled("alice")
    bob = await computer.settled("bob")
    attachment = (await bob.verb("message_status", id=""))["attachment_id"]
    await daemon.kill()
    (computer.paths.leases / f"{attachment}.json").unlink()
    await computer.start_bridge()
    await computer.until_row("bob", state="offline")

    await alice.send("bob", "to whom it may concern")
    await computer.attach(bob, "bob")

    assert "to whom it may concern" in await bob.mail()
    assert await bob.stop() == ""
