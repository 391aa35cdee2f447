"""Sending: idempotency, order, limits, who may write where."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bridge.server.limits import Settings
from tests.fakes.message_server import Served, good, refusal


async def pair(server: Served) -> tuple[Any, Any]:
    return await server.attach("alice"), await server.attach("bob")


async def test_an_accepted_message_says_where_it_went(server: Served) -> None:
    alice, _ = await pair(server)

    sent = good(await alice.send("agent:BOB", "  hello\n", "one"))

    assert sent["accepted"] is True
    assert sent["status"] == "accepted"
    assert sent["message_id"].startswith("msg-")
    assert sent["inbox_id"] == sent["conversation_id"]
    assert sent["sequence"] == 1
    assert sent["recipient"] == {
        "name": "bob",
        "state": "offline",
        "since": "2026-09-21T14:13:20Z",
        "offline_since": "2026-09-21T14:13:20Z",
    }
    assert sent["next"]


async def test_the_same_submission_id_is_answered_with_the_same_message(
    server: Served,
) -> None:
    alice, bob = await pair(server)

    first = good(await alice.send("agent:bob", "hello", "one"))
    server.clock.advance(300.0)
    # The lease moved in between; the submission id belongs to the agent.
    good(await alice.post("offline", {}))
    moved = await server.attach("alice", session_id="elsewhere")
    again = good(await moved.send("bob", " hello ", "one"))

    assert again == first
    assert len(good(await bob.get("read"))["messages"]) == 1


@pytest.mark.parametrize(
    ("target", "text"), [("agent:bob", "hello!"), ("agent:carol", "hello")]
)
async def test_a_submission_id_with_other_content_is_a_conflict(
    server: Served, target: str, text: str
) -> None:
    alice, bob = await pair(server)
    await server.attach("carol")
    good(await alice.send("agent:bob", "hello", "one"))

    error = refusal(await alice.send(target, text, "one"), 409)

    assert error["code"] == "submission_conflict"
    assert len(good(await bob.get("read"))["messages"]) == 1


async def test_two_agents_use_the_same_submission_id_apart(server: Served) -> None:
    alice, bob = await pair(server)

    first = good(await alice.send("agent:bob", "ping", "one"))
    second = good(await bob.send("agent:alice", "ping", "one"))

    assert first["message_id"] != second["message_id"]


async def test_one_submission_sent_twenty_times_at_once_is_one_message(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    answers: list[str] = []

    async def once() -> None:
        sent = good(await alice.send("agent:bob", "hello", "one"))
        answers.append(sent["message_id"])

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(once)

    assert len(answers) == 20
    assert len(set(answers)) == 1
    assert len(good(await bob.get("read"))["messages"]) == 1


async def test_two_names_share_one_inbox_in_both_directions(server: Served) -> None:
    alice, bob = await pair(server)

    first = good(await alice.send("agent:bob", "ping", "one"))
    answer = good(await bob.reply(first["inbox_id"], "pong", "two"))
    later = good(await bob.send("agent:alice", "by name", "three"))

    assert answer["inbox_id"] == later["inbox_id"] == first["inbox_id"]
    assert [first["sequence"], answer["sequence"], later["sequence"]] == [1, 2, 3]


async def test_an_unknown_name_is_refused_with_the_nearest(server: Served) -> None:
    alice, _ = await pair(server)
    await server.attach("bobby")
    await server.attach("zebra")

    error = refusal(await alice.send("agent:bbo", "hello", "one"), 404)

    assert error["code"] == "not_found"
    assert error["nearest"] == ["bob", "bobby"]
    assert "bob or bobby" in error["message"]


@pytest.mark.parametrize("target", ["crew:x", "workflow:x", "", "agent:"])
async def test_a_target_that_is_no_agent_is_not_found(
    server: Served, target: str
) -> None:
    alice, _ = await pair(server)

    assert refusal(await alice.send(target, "hello", "one"), 404)["nearest"] == []


async def test_an_agent_does_not_send_to_itself(server: Served) -> None:
    alice, _ = await pair(server)

    answer = await alice.send("agent:alice", "hello", "one")

    assert refusal(answer, 422)["code"] == "self_send"


@pytest.mark.parametrize("length", [1, 20_000])
async def test_a_message_has_up_to_20000_characters(
    server: Served, length: int
) -> None:
    alice, bob = await pair(server)
    text = "\N{GRINNING FACE}" * length

    good(await alice.send("agent:bob", f"\n {text} \n", "one"))

    page = good(await bob.get("read"))
    assert page["messages"][0]["message"] == text


@pytest.mark.parametrize("text", ["", " \n\t", "x" * 20_001])
async def test_an_empty_or_longer_message_is_refused(server: Served, text: str) -> None:
    alice, _ = await pair(server)

    error = refusal(await alice.send("agent:bob", text, "one"), 422)

    assert error["code"] == "invalid_message"
    assert "20,000" in error["message"]


@pytest.mark.parametrize("submission_id", ["", "x" * 129, "a\tb", "ä"])
async def test_a_submission_id_outside_its_grammar_is_refused(
    server: Served, submission_id: str
) -> None:
    alice, _ = await pair(server)

    error = refusal(await alice.send("agent:bob", "hello", submission_id), 422)

    assert error["code"] == "invalid_submission_id"


@pytest.mark.parametrize(
    "body",
    [
        {"message": "x", "submission_id": "1"},
        {"message": "x", "submission_id": "1", "target": "bob", "inbox_id": "inbox-1"},
        {"message": "x", "target": "bob"},
        {"message": "x", "target": "bob", "submission_id": "1", "sender": "root"},
    ],
)
async def test_a_send_without_exactly_its_keys_is_refused(
    server: Served, body: dict[str, str]
) -> None:
    alice, _ = await pair(server)

    assert refusal(await alice.post("send", body), 400)["code"] == "invalid_arguments"


async def test_a_lone_surrogate_is_not_taken(server: Served) -> None:
    alice, _ = await pair(server)

    answer = await server.client.post(
        f"{alice.path}/send",
        headers=alice.headers,
        content=b'{"target":"bob","submission_id":"1","message":"\\ud800"}',
    )

    assert refusal(answer, 400)["code"] == "invalid_json"


async def test_a_reply_needs_something_that_came_in(server: Served) -> None:
    alice, bob = await pair(server)
    eve = await server.attach("eve")
    first = good(await alice.send("agent:bob", "ping", "one"))

    early = await alice.reply(first["inbox_id"], "more", "two")
    strange = await eve.reply(first["inbox_id"], "me too", "three")
    unknown = await eve.reply("inbox-none", "me too", "four")

    assert refusal(early, 422)["code"] == "no_incoming_message"
    assert refusal(strange, 404) == refusal(unknown, 404)
    good(await bob.reply(first["inbox_id"], "pong", "five"))
    good(await alice.reply(first["inbox_id"], "more", "two"))


async def test_a_reply_to_a_sender_without_authority_is_refused(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    first = good(await alice.send("agent:bob", "ping", "one"))
    good(
        await server.client.delete(
            f"/api/oauth/mcp/connections/{alice.child['connection_id']}",
            headers=server.headers,
        )
    )

    answer = await bob.reply(first["inbox_id"], "pong", "two")

    assert refusal(answer, 422)["code"] == "no_incoming_message"


async def test_a_name_made_again_does_not_get_the_old_ones_mail(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    first = good(await alice.send("agent:bob", "ping", "one"))
    good(await bob.reply(first["inbox_id"], "pong", "two"))
    good(await server.call("unregister", agent_name="bob"))
    fresh = await server.attach("bob", session_id="new")

    to_old = await alice.reply(first["inbox_id"], "still there?", "three")
    to_new = good(await alice.send("agent:bob", "hello", "four"))

    assert refusal(to_old, 404)["code"] == "not_found"
    assert to_new["inbox_id"] != first["inbox_id"]
    page = good(await fresh.get("read"))
    assert [found["message"] for found in page["messages"]] == ["hello"]


@pytest.mark.parametrize("settings", [Settings(conversation_hourly=3)])
async def test_a_conversation_takes_so_many_messages_an_hour(
    server: Served, settings: Settings
) -> None:
    alice, bob = await pair(server)
    for number in range(3):
        good(await alice.send("agent:bob", f"{number}", f"{number}"))
        server.clock.advance(600.0)

    answer = await bob.send("agent:alice", "and you", "one")

    error = refusal(answer, 429)
    assert error["code"] == "conversation_rate"
    assert "Send it again in 30 min." in error["message"]
    assert answer.headers["retry-after"] == "1800"
    server.clock.advance(1_800.0)
    await server.renew(bob)
    good(await bob.send("agent:alice", "and you", "one"))


@pytest.mark.parametrize("settings", [Settings(conversation_messages=3)])
async def test_a_full_inbox_refuses_rather_than_drop_what_was_not_admitted(
    server: Served, settings: Settings
) -> None:
    alice, bob = await pair(server)
    sent = [
        good(await alice.send("agent:bob", f"{number}", f"{number}"))
        for number in range(3)
    ]

    error = refusal(await alice.send("agent:bob", "3", "3"), 409)
    await bob.say(sent[1]["message_id"], "admitted")
    good(await alice.send("agent:bob", "3", "3"))

    assert error["code"] == "inbox_full"
    page = good(await bob.get("read"))
    assert [found["message"] for found in page["messages"]] == ["0", "2", "3"]
    # The dropped one is still known by its submission id, and still one message.
    assert good(await alice.send("agent:bob", "1", "1")) == sent[1]
    assert good(await alice.get("sent/1"))["delivery"] == "forgotten"


async def test_mailbox_numbers_rise_without_gaps_however_many_send_at_once(
    server: Served,
) -> None:
    bob = await server.attach("bob")
    senders = [await server.attach(f"s{number}") for number in range(5)]

    async def burst(number: int) -> None:
        for count in range(6):
            good(await senders[number].send("bob", f"{number} {count}", f"{count}"))

    async with trio.open_nursery() as nursery:
        for number in range(len(senders)):
            nursery.start_soon(burst, number)

    page = good(await bob.get("read", limit=100))["messages"]
    assert [found["sequence"] for found in page] == list(
        range(500_000_001, 500_000_031)
    )
    for number in range(5):
        own = [found["message"] for found in page if found["sender"] == f"s{number}"]
        assert own == [f"{number} {count}" for count in range(6)]


async def test_a_cancelled_send_is_stored_and_wakes_its_reader(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    async with bob.stream(0) as stream:
        await stream.until("alive")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alice.send, "agent:bob", "hello", "one")
            await trio.testing.wait_all_tasks_blocked()
            # The client goes away while its send is under way.
            nursery.cancel_scope.cancel()

        answer = good(await alice.send("agent:bob", "hello", "one"))
        told = await stream.next_of("message")

    assert told["message_id"] == answer["message_id"]
