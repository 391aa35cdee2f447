"""Reading: pages, cursors, filtering, release."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.fakes.message_server import Served, good, refusal


async def pair(server: Served) -> tuple[Any, Any]:
    return await server.attach("alice"), await server.attach("bob")


async def revoke(server: Served, connection_id: str) -> None:
    good(
        await server.client.delete(
            f"/api/oauth/mcp/connections/{connection_id}", headers=server.headers
        )
    )


async def test_a_mailbox_page_goes_on_from_its_cursor(server: Served) -> None:
    alice, bob = await pair(server)
    for number in range(5):
        good(await alice.send("bob", f"{number}", f"{number}"))

    first = good(await bob.get("read", limit=3))
    second = good(await bob.get("read", after=first["next_cursor"], limit=3))
    empty = good(await bob.get("read", after=second["next_cursor"]))

    assert [m["message"] for m in first["messages"]] == ["0", "1", "2"]
    assert [m["message"] for m in second["messages"]] == ["3", "4"]
    assert first["next_cursor"] == 500_000_003
    assert empty == {"messages": [], "next_cursor": 500_000_005}


async def test_a_read_message_has_all_its_keys(server: Served) -> None:
    alice, bob = await pair(server)
    sent = good(await alice.send("bob", "hello", "one"))

    page = good(await bob.get("read"))

    assert page["messages"] == [
        {
            "inbox_id": sent["inbox_id"],
            "conversation_id": sent["inbox_id"],
            "message_id": sent["message_id"],
            "sequence": 500_000_001,
            "sender": "alice",
            "sender_provider": "script",
            "reply_address": sent["inbox_id"],
            "message": "hello",
            "sent_at": "2026-09-21T14:13:20Z",
            "delivery": "stored",
            "delivery_error": "",
            "observed": "",
        }
    ]


async def test_the_person_is_told_who_of_an_inbox_is_gone(server: Served) -> None:
    alice, bob = await pair(server)
    sent = good(await alice.send("bob", "hello", "one"))

    async with bob.stream() as stream:
        await stream.next_of("alive")
        inbox = good(await server.call("read", inbox_id=sent["inbox_id"]))
        mailbox = good(await server.call("read", agent_name="bob"))
        unseen = good(await bob.get("read"))

    gone = {side["name"]: side["offline_since"] for side in inbox["sides"]}
    assert gone == {"alice": "2026-09-21T14:13:20Z", "bob": None}
    assert [side["name"] for side in mailbox["sides"]] == ["bob"]
    assert "sides" not in unseen


async def test_an_inbox_page_counts_the_conversation_and_leaves_own_out(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    inbox = good(await alice.send("bob", "ping", "one"))["inbox_id"]
    good(await bob.reply(inbox, "pong", "two"))
    good(await alice.send("bob", "more", "three"))

    page = good(await bob.get("read", inbox_id=inbox))
    rest = good(await bob.get("read", inbox_id=inbox, after=1))

    assert [(m["sequence"], m["message"]) for m in page["messages"]] == [
        (1, "ping"),
        (3, "more"),
    ]
    assert page["next_cursor"] == 3
    assert page["inbox_id"] == inbox
    assert [m["message"] for m in rest["messages"]] == ["more"]


async def test_a_cursor_of_the_wrong_kind_is_refused(server: Served) -> None:
    alice, bob = await pair(server)
    inbox = good(await alice.send("bob", "ping", "one"))["inbox_id"]

    mailbox = await bob.get("read", after=1)
    conversation = await bob.get("read", inbox_id=inbox, after=500_000_001)

    assert refusal(mailbox, 422)["code"] == "wrong_cursor"
    assert refusal(conversation, 422)["code"] == "wrong_cursor"


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 101},
        {"wait_s": 26},
        {"after": -1},
        {"after": "x"},
        {"before": 3},
    ],
)
async def test_a_query_outside_its_bounds_is_refused(
    server: Served, query: dict[str, Any]
) -> None:
    bob = await server.attach("bob")

    assert refusal(await bob.get("read", **query), 400)["code"] == "invalid_arguments"


async def test_somebody_elses_inbox_reads_like_an_unknown_one(server: Served) -> None:
    alice, _ = await pair(server)
    eve = await server.attach("eve")
    inbox = good(await alice.send("bob", "ping", "one"))["inbox_id"]

    denied = refusal(await eve.get("read", inbox_id=inbox), 404)

    assert denied == refusal(await eve.get("read", inbox_id="inbox-none"), 404)


async def test_reading_changes_nothing(server: Served) -> None:
    alice, bob = await pair(server)
    good(await alice.send("bob", "ping", "one"))

    first = good(await bob.get("read"))
    second = good(await bob.get("read"))

    assert first == second
    assert good(await alice.get("sent/one"))["delivery"] == "stored"


async def test_a_waiting_read_returns_with_the_message(server: Served) -> None:
    alice, bob = await pair(server)
    pages: list[Any] = []

    async def wait() -> None:
        pages.append(good(await bob.get("read", wait_s=20)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        good(await alice.send("bob", "ping", "one"))

    assert [m["message"] for m in pages[0]["messages"]] == ["ping"]


async def test_a_waiting_read_ends_empty(server: Served) -> None:
    bob = await server.attach("bob")

    page = good(await bob.get("read", wait_s=0.05))

    assert page["messages"] == []


async def test_a_waiting_read_checks_access_again_before_it_shows(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    answers: list[Any] = []

    async def wait() -> None:
        answers.append(await bob.get("read", wait_s=20))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        good(await bob.post("offline", {}))
        await server.attach("bob", session_id="elsewhere")
        good(await alice.send("bob", "not for the old lease", "one"))

    assert answers[0].status_code in {401, 410}


async def test_an_attached_agent_reads_only_authorised_senders(server: Served) -> None:
    alice, bob = await pair(server)
    carol = await server.attach("carol")
    inbox = good(await alice.send("bob", "from alice", "one"))["inbox_id"]
    good(await carol.send("bob", "from carol", "one"))

    await revoke(server, alice.child["connection_id"])

    page = good(await bob.get("read"))
    assert [m["message"] for m in page["messages"]] == ["from carol"]
    assert good(await bob.get("read", inbox_id=inbox))["messages"] == []
    # The person's own login keeps its broader view, and sees why.
    whole = good(await server.call("read", agent_name="bob"))
    assert [(m["message"], m["delivery_error"]) for m in whole["messages"]] == [
        ("from alice", "connection_revoked"),
        ("from carol", ""),
    ]


async def test_an_offline_or_detached_sender_is_still_readable(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    good(await alice.send("bob", "hello", "one"))
    good(await server.client.delete(alice.path, headers=alice.headers))

    page = good(await bob.get("read"))

    assert [m["message"] for m in page["messages"]] == ["hello"]


async def test_release_gives_the_servers_word_on_each_message(server: Served) -> None:
    alice, bob = await pair(server)
    carol = await server.attach("carol")
    kept = good(await alice.send("bob", "1", "1"))["message_id"]
    revoked = good(await carol.send("bob", "2", "2"))["message_id"]
    known = good(await carol.send("bob", "3", "3"))["message_id"]
    foreign = good(await carol.send("alice", "4", "4"))["message_id"]
    await bob.say(known, "admitted")
    await revoke(server, carol.child["connection_id"])

    ids = [kept, revoked, known, foreign, kept]
    answer = good(await bob.post("release", {"message_ids": ids}))

    assert answer == {
        "released": [kept],
        "withheld": [
            {"id": revoked, "reason": "connection_revoked"},
            {"id": known, "reason": "sender_not_authorised"},
            {"id": foreign, "reason": "not_found"},
        ],
        "valid_s": 30,
    }


@pytest.mark.parametrize("count", [0, 101])
async def test_release_takes_one_to_a_hundred_ids(server: Served, count: int) -> None:
    bob = await server.attach("bob")

    answer = await bob.post("release", {"message_ids": ["msg"] * count})

    assert refusal(answer, 400)["code"] == "invalid_arguments"
