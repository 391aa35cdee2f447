"""What became of a sent message, and an inbox's last deliveries."""

from __future__ import annotations

from typing import Any

from tests.fakes.message_server import Served, good, refusal


async def pair(server: Served) -> tuple[Any, Any]:
    return await server.attach("alice"), await server.attach("bob")


async def test_a_sent_message_is_known_by_both_its_ids(server: Served) -> None:
    alice, bob = await pair(server)
    sent = good(await alice.send("bob", "hello", "job/1 ok?"))
    await bob.say(sent["message_id"], "offered")

    by_message = good(await alice.get(f"sent/{sent['message_id']}"))
    by_submission = good(await alice.get("sent/job%2F1%20ok%3F"))

    assert by_message == by_submission
    assert by_message == {
        "message_id": sent["message_id"],
        "submission_id": "job/1 ok?",
        "inbox_id": sent["inbox_id"],
        "conversation_id": sent["inbox_id"],
        "sequence": 1,
        "recipient": {
            "name": "bob",
            "state": "offline",
            "since": "2026-09-21T14:13:20Z",
            "offline_since": "2026-09-21T14:13:20Z",
        },
        "sent_at": "2026-09-21T14:13:20Z",
        "delivery": "stored",
        "observed": "offered",
        "delivery_error": "",
        "delivery_at": None,
    }


async def test_a_receipt_is_told_with_its_time(server: Served) -> None:
    alice, bob = await pair(server)
    sent = good(await alice.send("bob", "hello", "one"))
    await bob.say(sent["message_id"], "admitted")

    known = good(await alice.get("sent/one"))

    assert known["delivery"] == "admitted"
    assert known["delivery_at"] == "1970-01-01T00:00:01Z"


async def test_a_sender_is_told_since_when_its_recipient_is_gone(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    good(await alice.send("bob", "hello", "one"))

    async def recipient() -> Any:
        return good(await alice.get("sent/one"))["recipient"]

    async with bob.stream() as stream:
        await stream.next_of("alive")
        there = await recipient()
        server.clock.advance(60)
        good(await bob.post("offline", {}))
        await stream.rest()
    await server.wait_until_connected("bob", is_connected=False)
    gone = await recipient()
    server.clock.advance(600)

    assert (there["state"], there["offline_since"]) == ("connected", None)
    assert (gone["state"], gone["offline_since"]) == ("offline", "2026-09-21T14:14:20Z")
    assert await recipient() == gone


async def test_what_another_sent_is_not_known(server: Served) -> None:
    alice, bob = await pair(server)
    sent = good(await alice.send("bob", "hello", "one"))

    assert refusal(await bob.get(f"sent/{sent['message_id']}"), 404)
    assert refusal(await bob.get("sent/one"), 404)


async def test_the_inbox_state_shows_deliveries_without_bodies(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    inbox = ""
    for number in range(22):
        sent = good(await alice.send("bob", f"secret {number}", f"{number}"))
        inbox = sent["inbox_id"]
    await bob.say(sent["message_id"], "processed")

    answer = await server.call("state", inbox_id=inbox)

    state = good(answer)
    assert state["participants"] == ["alice", "bob"]
    assert [line["sequence"] for line in state["messages"]] == list(range(3, 23))
    assert state["messages"][-1]["delivery"] == "processed"
    assert state["messages"][-1]["recipient"] == "bob"
    assert "secret" not in answer.text
    assert refusal(await server.call("state", inbox_id="inbox-none"), 404)
