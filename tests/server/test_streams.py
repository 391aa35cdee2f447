"""The event stream: replay, live, words, retractions, its end."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bridge.server.limits import Settings
from tests.fakes.message_server import NET_S, Served, good, refusal


async def pair(server: Served) -> tuple[Any, Any]:
    return await server.attach("alice"), await server.attach("bob")


async def revoke(server: Served, connection_id: str) -> None:
    good(
        await server.client.delete(
            f"/api/oauth/mcp/connections/{connection_id}", headers=server.headers
        )
    )


async def test_a_replay_is_oldest_first_and_then_goes_on_live(server: Served) -> None:
    alice, bob = await pair(server)
    # More than two pages of twenty.
    for number in range(45):
        good(await alice.send("bob", f"{number}", f"{number}"))

    async with bob.stream(0) as stream:
        assert await stream.next() == ("alive", {"through": 0})
        replay = await stream.until("alive")
        good(await alice.send("bob", "live", "live"))
        live = await stream.next()

    assert [body["message"] for _, body in replay[:-1]] == [
        f"{number}" for number in range(45)
    ]
    assert [body["sequence"] for _, body in replay[:-1]] == list(
        range(500_000_001, 500_000_046)
    )
    assert replay[-1] == ("alive", {"through": 500_000_045})
    assert live[1]["message"] == "live"


async def test_a_message_event_has_all_its_keys_and_its_id(server: Served) -> None:
    alice, bob = await pair(server)
    sent = good(await alice.send("bob", "line\nand \u2028 more", "one"))
    async with bob.stream(0) as stream:
        await stream.next()

        event = await stream.next_raw()

    assert event.id == "500000001"
    assert event.json() == {
        "message_id": sent["message_id"],
        "sequence": 500_000_001,
        "inbox_id": sent["inbox_id"],
        "conversation_id": sent["inbox_id"],
        "sender": "alice",
        "sender_provider": "script",
        "reply_address": sent["inbox_id"],
        "message": "line\nand \u2028 more",
        "sent_at": "2026-09-21T14:13:20Z",
    }


async def test_the_cursor_decides_where_a_replay_starts(server: Served) -> None:
    alice, bob = await pair(server)
    for number in range(3):
        good(await alice.send("bob", f"{number}", f"{number}"))
    good(await bob.post("progress", {"offered_through": 500_000_002}))

    async with bob.stream(500_000_001) as stream:
        assert await stream.next() == ("alive", {"through": 500_000_001})
        assert (await stream.next())[1]["message"] == "1"
    async with bob.stream() as stream:
        assert await stream.next() == ("alive", {"through": 500_000_002})
        assert (await stream.next())[1]["message"] == "2"


@pytest.mark.parametrize("cursor", [1, 499_999_999, 1_000_000_001])
async def test_a_conversation_cursor_opens_no_stream(
    server: Served, cursor: int
) -> None:
    bob = await server.attach("bob")

    answer = await server.client.get(
        f"{bob.path}/stream",
        headers={**bob.headers, "last-event-id": str(cursor)},
    )

    assert refusal(answer, 422)["code"] == "wrong_cursor"


@pytest.mark.parametrize("query", [{"messages": "maybe"}, {"receipts_after": -1}])
async def test_a_stream_with_a_wrong_query_is_refused(
    server: Served, query: dict[str, Any]
) -> None:
    bob = await server.attach("bob")

    assert refusal(await bob.get("stream", **query), 400)


@pytest.mark.parametrize("delivery", ["offered", "unsure", "typed", "admitted"])
async def test_a_replay_skips_what_the_agent_reported_before(
    server: Served, delivery: str
) -> None:
    alice, bob = await pair(server)
    first = good(await alice.send("bob", "seen elsewhere", "one"))
    good(await alice.send("bob", "new", "two"))
    await bob.say(first["message_id"], delivery)
    good(await bob.post("offline", {}))
    moved = await server.attach("bob", session_id="another computer")

    async with moved.stream(0) as stream:
        assert (await stream.next_of("message"))["message"] == "new"


async def test_without_messages_the_rest_still_comes(server: Served) -> None:
    alice, bob = await pair(server)
    carol = await server.attach("carol")
    first = good(await carol.send("bob", "one", "one"))
    answer = good(await bob.send("alice", "hi", "hi"))
    async with bob.stream(500_000_001, messages="off") as stream:
        assert await stream.next() == ("alive", {"through": 500_000_001})
        good(await alice.send("bob", "kept for later", "two"))
        await alice.say(answer["message_id"], "admitted")
        await revoke(server, carol.child["connection_id"])

        seen = await stream.until("retract")

    assert not [name for name, _ in seen if name == "message"]
    assert [body["delivery"] for name, body in seen if name == "receipt"] == [
        "admitted"
    ]
    assert seen[-1][1] == {
        "message_ids": [first["message_id"]],
        "reason": "connection_revoked",
    }


@pytest.mark.parametrize("settings", [Settings(heartbeat_s=0.01)])
async def test_the_heartbeat_repeats_the_servers_word(
    server: Served, settings: Settings
) -> None:
    alice, bob = await pair(server)
    good(await alice.send("bob", "hello", "one"))

    async with bob.stream(0) as stream:
        seen = [await stream.next() for _ in range(6)]

    assert seen[0] == ("alive", {"through": 0})
    assert seen[2:] == [("alive", {"through": 500_000_001})] * 4


async def test_a_revoked_connections_unread_messages_are_retracted(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    admitted = good(await alice.send("bob", "1", "1"))["message_id"]
    unread = good(await alice.send("bob", "2", "2"))["message_id"]
    await bob.say(admitted, "admitted")
    async with bob.stream(500_000_002) as stream:
        await stream.until("alive")
        unseen = good(await alice.send("bob", "3", "3"))["message_id"]
        await stream.next_of("message")

        await revoke(server, alice.child["connection_id"])

        assert await stream.next_of("retract") == {
            "message_ids": [unread, unseen],
            "reason": "connection_revoked",
        }
    # After a reconnect it is said again, for what the client may hold.
    async with bob.stream(500_000_002) as stream:
        assert await stream.next() == (
            "retract",
            {"message_ids": [unread], "reason": "connection_revoked"},
        )
        assert (await stream.next())[0] == "alive"


async def test_an_unregistered_senders_unread_messages_are_retracted(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    sent = good(await alice.send("bob", "1", "1"))["message_id"]
    async with bob.stream(0) as stream:
        await stream.until("message")
        good(await server.call("unregister", agent_name="alice"))

        told = await stream.next_of("retract")

    assert told == {"message_ids": [sent], "reason": "name_unregistered"}
    async with bob.stream(0) as stream:
        assert [name for name, _ in await stream.until("alive")] == ["alive"]


async def test_leaving_or_expiring_retracts_nothing(server: Served) -> None:
    alice, bob = await pair(server)
    carol = await server.attach("carol")
    good(await alice.send("bob", "from alice", "1"))
    good(await carol.send("bob", "from carol", "1"))
    good(await alice.post("offline", {}))
    good(await server.client.delete(carol.path, headers=carol.headers))
    server.clock.advance(3_601.0)
    await server.renew(bob)

    async with bob.stream(0) as stream:
        seen = [await stream.next() for _ in range(4)]

    assert [name for name, _ in seen] == ["alive", "message", "message", "alive"]


async def test_unregistering_ends_the_stream(server: Served) -> None:
    bob = await server.attach("bob")
    async with bob.stream(0) as stream:
        await stream.until("alive")
        good(await server.call("unregister", agent_name="bob"))

        assert (await stream.rest())[-1] == ("attachment", {"state": "unregistered"})


async def test_revoking_the_child_ends_the_stream(server: Served) -> None:
    bob = await server.attach("bob")
    async with bob.stream(0) as stream:
        await stream.until("alive")
        await revoke(server, bob.child["connection_id"])

        assert (await stream.rest())[-1] == ("attachment", {"state": "revoked"})


async def test_revoking_the_parent_ends_its_children(server: Served) -> None:
    bob = await server.attach("bob")
    async with bob.stream(0) as stream:
        await stream.until("alive")
        await revoke(server, "oauth-local")

        assert (await stream.rest())[-1] == ("attachment", {"state": "revoked"})
    assert refusal(await bob.get("read"), 401)["code"] == "invalid_token"
    refreshed = await server.refresh(bob.child["refresh_token"])
    assert refreshed.json() == {"error": "invalid_grant"}
    assert refusal(await server.call("list_agents"), 401)


async def test_a_detach_from_elsewhere_ends_the_stream(server: Served) -> None:
    bob = await server.attach("bob")
    async with bob.stream(0) as stream:
        await stream.until("alive")
        good(await server.client.delete(bob.path, headers=server.headers))

        assert (await stream.rest())[-1] == ("attachment", {"state": "revoked"})


async def test_a_newer_stream_of_a_lease_ends_the_older(server: Served) -> None:
    alice, bob = await pair(server)
    async with bob.stream(0) as older:
        await older.until("alive")
        async with bob.stream(0) as newer:
            await newer.until("alive")

            assert all(name == "alive" for name, _ in await older.rest())
            good(await alice.send("bob", "hello", "one"))
            assert (await newer.next_of("message"))["message"] == "hello"
            assert (await server.agents())["bob"]["connected"] is True
    await server.wait_until_connected("bob", is_connected=False)


async def test_the_directory_shows_who_is_connected_since_when(
    server: Served,
) -> None:
    bob = await server.attach("bob")
    server.clock.advance(60.0)
    async with bob.stream(0) as stream:
        await stream.next()
        online = (await server.agents())["bob"]
        server.clock.advance(60.0)

    assert (online["connected"], online["since"]) == (True, "2026-09-21T14:14:20Z")
    # The end is noted a moment after the stream is gone.
    with trio.fail_after(NET_S):
        while (offline := (await server.agents())["bob"])["since"] == online["since"]:
            await trio.lowlevel.checkpoint()
    assert (offline["connected"], offline["since"]) == (False, "2026-09-21T14:15:20Z")


@pytest.mark.parametrize("settings", [Settings(streams=1)])
async def test_streams_are_limited(server: Served, settings: Settings) -> None:
    alice, bob = await pair(server)
    async with bob.stream(0) as stream:
        await stream.next()

        answer = await alice.get("stream")

        # Its own newer stream takes the older one's place.
        async with bob.stream(0) as newer:
            await newer.next()
    assert refusal(answer, 503)["code"] == "too_many_streams"
    assert answer.headers["retry-after"] == "30"
    await server.wait_until_connected("bob", is_connected=False)
    async with alice.stream(0) as stream:
        await stream.next()


async def test_another_agents_stream_is_not_found(server: Served) -> None:
    alice, bob = await pair(server)

    answer = await server.client.get(f"{bob.path}/stream", headers=alice.headers)

    assert refusal(answer, 404)["code"] == "not_found"


# It holds for alice's answers too, which a busy computer may take long to fetch.
@pytest.mark.parametrize("settings", [Settings(send_wait_s=1.0)])
async def test_a_stream_that_takes_nothing_is_closed_and_its_cursor_recovers_it(
    server: Served, settings: Settings
) -> None:
    alice, bob = await pair(server)
    text = "x" * 20_000
    sleeper = await trio.open_unix_socket(str(server.folder / "server.sock"))
    request = (
        f"GET {bob.path}/stream HTTP/1.1\r\nHost: bridge\r\nLast-Event-ID: 0\r\n"
        f"Authorization: {bob.headers['authorization']}\r\n\r\n"
    )
    await sleeper.send_all(request.encode())
    await server.wait_until_connected("bob", is_connected=True)

    # Far more than a socket buffer holds, while the client reads nothing.
    for number in range(100):
        good(await alice.send("bob", text, f"{number}"))
    await server.wait_until_connected("bob", is_connected=False)
    await sleeper.aclose()

    async with bob.stream(0) as stream:
        await stream.next()
        replay = await stream.until("alive")
    assert len(replay) == 101


async def test_messages_sent_while_a_replay_runs_come_once_and_in_order(
    server: Served,
) -> None:
    alice, bob = await pair(server)
    for number in range(30):
        good(await alice.send("bob", f"{number}", f"{number}"))

    async def go_on() -> None:
        for number in range(30, 60):
            good(await alice.send("bob", f"{number}", f"{number}"))

    seen: list[str] = []
    async with bob.stream(0) as stream, trio.open_nursery() as nursery:
        nursery.start_soon(go_on)
        while len(seen) < 60:
            seen.append((await stream.next_of("message"))["message"])

    assert seen == [f"{number}" for number in range(60)]
