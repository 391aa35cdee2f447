"""Attaching: names, leases, moves, children."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from bridge.server.limits import Settings
from bridge.server.schema import agents
from tests.fakes.message_server import BRIDGE, Lease, Served, caller, good, refusal


async def test_a_free_name_is_registered_and_its_child_told_once(
    server: Served,
) -> None:
    first = await server.attach("Bob", session_id="s-1", purpose="Reviews changes")
    again = await server.attach(
        "bob", session_id="s-1", child_id=first.child["connection_id"]
    )

    assert first.answer["name"] == "Bob"
    assert first.answer["state"] == "attached"
    assert first.answer["policy"] == "current"
    assert first.child["access_token"].startswith("aw_cli_")
    assert first.child["expires_in"] == 3600
    assert again.answer["child"] is None
    assert again.id == first.id
    assert (await server.agents())["Bob"]["purpose"] == "Reviews changes"


async def test_a_bridge_without_the_childs_tokens_gets_a_new_child(
    server: Served,
) -> None:
    first = await server.attach("bob")
    again = await server.attach("bob")

    assert again.id == first.id
    assert again.child["connection_id"] != first.child["connection_id"]
    assert refusal(await first.get("read"), 401)["code"] == "invalid_token"
    assert good(await again.get("read"))["messages"] == []


async def test_a_nameless_session_keeps_the_name_it_once_got(server: Served) -> None:
    first = await server.attach(None, provider="claude", session_id="s-1")
    again = await server.attach(None, provider="claude", session_id="s-1")
    other = await server.attach(None, provider="claude", session_id="s-2")
    named = await server.attach("reviewer", provider="claude", session_id="s-2")
    back = await server.attach(None, provider="claude", session_id="s-2")

    assert first.answer["name"].startswith("claude-")
    assert len(first.answer["name"]) == len("claude-") + 4
    assert again.answer["name"] == first.answer["name"]
    assert other.answer["name"] != first.answer["name"]
    assert back.answer["name"] == named.answer["name"] == "reviewer"


async def test_a_default_name_grows_when_another_session_holds_it(
    server: Served,
) -> None:
    first = await server.attach(None, provider="claude", session_id="s-1")
    short = first.answer["name"]
    good(await server.call("unregister", agent_name=short))
    await server.attach(short, provider="codex", session_id="other")

    longer = await server.attach(None, provider="claude", session_id="s-1")

    assert longer.answer["name"].startswith(short)
    assert len(longer.answer["name"]) == len(short) + 1


async def test_a_name_held_by_a_live_session_is_refused_with_its_holder(
    server: Served,
) -> None:
    await server.attach("bob", provider="claude", session_id="s-1", host_id="desk")

    error = refusal(await server.try_attach("BOB", session_id="s-2", confirm=True), 409)

    assert error["code"] == "name_held"
    assert error["holder"] == {
        "name": "bob",
        "provider": "claude",
        "session_id": "s-1",
        "host_id": "desk",
        "since": "2026-09-21T14:13:20Z",
    }
    assert "claude" in error["message"]
    assert "2026-09-21T14:13:20Z" in error["message"]


async def test_an_offline_name_moves_and_the_old_lease_is_fenced(
    server: Served,
) -> None:
    old = await server.attach("bob", session_id="s-1")
    good(await old.post("offline", {}))
    new = await server.attach(
        "bob", session_id="s-2", child_id=old.child["connection_id"]
    )
    new.child = old.child

    async with old.stream(0) as ended:
        assert await ended.rest() == [("attachment", {"state": "replaced"})]
    assert new.id != old.id
    assert new.answer["agent_id"] == old.answer["agent_id"]
    assert new.answer["child"] is None
    receipts = {
        "receipts": [{"message_id": "msg-1", "delivery": "admitted", "at": 1.0}]
    }
    error = refusal(await old.post("receipts", receipts), 410)
    assert error["code"] == "gone"
    assert error["state"] == "replaced"
    assert good(await new.post("receipts", receipts))["unknown"] == ["msg-1"]


@pytest.mark.parametrize("settings", [Settings(live_without_stream_s=600.0)])
async def test_a_lease_without_a_stream_is_live_for_ten_minutes(
    server: Served, settings: Settings
) -> None:
    await server.attach("bob", session_id="s-1")
    server.clock.advance(599.0)
    refusal(await server.try_attach("bob", session_id="s-2"), 409)
    server.clock.advance(1.0)

    moved = await server.attach("bob", session_id="s-2")

    assert moved.answer["state"] == "attached"


async def test_a_stream_keeps_its_lease_live_for_as_long_as_it_is_open(
    server: Served,
) -> None:
    bob = await server.attach("bob", session_id="s-1")
    async with bob.stream(0) as stream:
        await stream.next()
        server.clock.advance(3_000.0)

        error = refusal(await server.try_attach("bob", session_id="s-2"), 409)

    assert error["code"] == "name_held"


async def test_moving_ends_the_open_stream_with_replaced(server: Served) -> None:
    bob = await server.attach("bob", session_id="s-1")
    async with bob.stream(0) as stream:
        await stream.until("alive")
        # The session itself takes another name: its old lease is over at once.
        await server.attach("bobby", session_id="s-1")

        seen = await stream.rest()

    assert seen[-1] == ("attachment", {"state": "replaced"})


async def test_a_name_that_does_not_allow_this_login_is_refused_with_how(
    server: Served,
) -> None:
    await server.attach("bob")
    good(await server.call("register", agent_name="other"))
    token = await server.second_login("oauth-second")

    error = refusal(
        await server.client.post(
            f"{BRIDGE}/attachments",
            headers=caller(token),
            json={
                "name": "other",
                "provider": "script",
                "session_id": "s",
                "host_id": "there",
            },
        ),
        403,
    )

    assert error["code"] == "not_allowed"
    assert "--allow-connection oauth-second" in error["message"]


async def test_an_allowed_second_login_attaches_under_its_own_child(
    server: Served,
) -> None:
    old = await server.attach("bob", session_id="s-1")
    token = await server.second_login("oauth-second")
    good(
        await server.call(
            "register", agent_name="bob", allowed_connection_ids=["oauth-second"]
        )
    )
    good(await old.post("offline", {}))

    answer = good(
        await server.client.post(
            f"{BRIDGE}/attachments",
            headers=caller(token),
            json={
                "name": "bob",
                "provider": "script",
                "session_id": "s-2",
                "host_id": "there",
                "child_id": old.child["connection_id"],
            },
        )
    )

    assert answer["child"]["connection_id"] != old.child["connection_id"]
    # The first login's child still lives, but holds no lease any more.
    assert refusal(await old.get("read"), 410)["state"] == "replaced"
    stranger = Lease(server.client, {**answer, "child": old.child})
    assert refusal(await stranger.get("read"), 404)["code"] == "not_found"


async def test_detaching_revokes_the_child_and_keeps_the_name(server: Served) -> None:
    bob = await server.attach("bob")
    path = f"{BRIDGE}/attachments/{bob.id}"

    first = good(await server.client.delete(path, headers=bob.headers))
    again = good(await server.client.delete(path, headers=server.headers))

    assert first == again == {"detached": True}
    assert refusal(await bob.get("read"), 401)["code"] == "invalid_token"
    assert (await server.agents())["bob"]["connected"] is False
    assert (await server.attach("bob", session_id="s-9")).answer["state"] == "attached"


async def test_a_childs_tokens_do_not_detach_another_agent(server: Served) -> None:
    bob = await server.attach("bob")
    eve = await server.attach("eve")

    answer = await server.client.delete(
        f"{BRIDGE}/attachments/{bob.id}", headers=eve.headers
    )

    assert refusal(answer, 404)["code"] == "not_found"
    assert good(await bob.get("read"))["messages"] == []


async def test_a_revoked_child_comes_back_only_by_the_persons_own_attach(
    server: Served,
) -> None:
    bob = await server.attach("bob")
    good(
        await server.client.delete(
            f"/api/oauth/mcp/connections/{bob.child['connection_id']}",
            headers=server.headers,
        )
    )

    error = refusal(await server.try_attach("bob"), 403)
    derived = await server.attach("bob", confirm=True)

    assert error["code"] == "confirm_needed"
    assert derived.child["connection_id"] != bob.child["connection_id"]
    assert good(await derived.get("read"))["messages"] == []


async def test_an_expired_child_is_derived_anew_once_by_the_person(
    server: Served,
) -> None:
    await server.attach("bob")
    server.clock.advance(30 * 86_400 + 1.0)

    refusal(await server.try_attach("bob"), 403)
    derived = await server.attach("bob", confirm=True)
    again = await server.attach(
        "bob", confirm=True, child_id=derived.child["connection_id"]
    )

    assert derived.child
    assert again.answer["child"] is None


async def test_a_child_can_attach_nothing(server: Served) -> None:
    bob = await server.attach("bob")

    answer = await server.client.post(
        f"{BRIDGE}/attachments",
        headers=bob.headers,
        json={"provider": "script", "session_id": "s", "host_id": "h"},
    )

    assert refusal(answer, 403)["code"] == "insufficient_scope"


async def test_an_attachment_of_an_older_policy_is_held_until_confirmed(
    server: Served,
) -> None:
    alice = await server.attach("alice")
    bob = await server.attach("bob")
    good(await alice.send("agent:bob", "hello", "one"))
    await server.change(
        lambda unit: unit.run(
            update(agents).where(agents.c.name == "bob").values(policy=0)
        )
    )

    held = await server.attach("bob", child_id=bob.child["connection_id"])
    async with bob.stream(0) as stream:
        assert await stream.rest() == [("attachment", {"state": "held"})]
    assert held.answer["state"] == held.answer["policy"] == "held"
    assert refusal(await bob.get("read"), 409)["code"] == "held"
    refused = await bob.send("agent:alice", "hi", "two")
    assert refusal(refused, 409)["code"] == "held"
    status = good(await alice.get("sent/one"))
    assert status["recipient"]["state"] == "held"

    confirmed = await server.attach(
        "bob", child_id=bob.child["connection_id"], confirm=True
    )

    assert confirmed.answer["policy"] == "current"
    async with bob.stream(0) as stream:
        assert (await stream.next_of("message"))["message"] == "hello"


async def test_the_roster_shows_the_others_online_first(server: Served) -> None:
    await server.attach("zoe")
    ann = await server.attach("ann")
    async with ann.stream(0) as stream:
        await stream.next()
        good(await server.call("register", agent_name="box"))

        bob = await server.attach("bob")

    names = [(card["name"], card["connected"]) for card in bob.answer["roster"]]
    assert names == [("ann", True), ("box", False), ("zoe", False)]
    assert bob.answer["roster"][1]["since"] is None


@pytest.mark.parametrize("settings", [Settings(names_per_account=2)])
async def test_names_are_limited_per_account(
    server: Served, settings: Settings
) -> None:
    await server.attach("a")
    await server.attach("b")

    assert refusal(await server.try_attach("c"), 422)["code"] == "too_many_names"
    good(await server.call("unregister", agent_name="a"))
    await server.attach("c")


@pytest.mark.parametrize("settings", [Settings(names=1)])
async def test_names_are_limited_per_server(server: Served, settings: Settings) -> None:
    await server.attach("a")

    assert refusal(await server.try_attach("c"), 422)["code"] == "too_many_names"


@pytest.mark.parametrize(
    "name", ["", "-a", "a b", "a/b", "ä", "x" * 65, "a\n", "agent:bob"]
)
async def test_a_name_outside_the_grammar_is_refused(server: Served, name: str) -> None:
    assert refusal(await server.try_attach(name), 422)["code"] == "invalid_name"


@pytest.mark.parametrize(
    "more",
    [
        {"provider": "Claude Code"},
        {"session_id": ""},
        {"host_id": "a\nb"},
        {"unknown": 1},
        {"confirm": "yes"},
    ],
)
async def test_a_malformed_attach_is_refused(
    server: Served, more: dict[str, object]
) -> None:
    answer = await server.try_attach("bob", **more)

    assert refusal(answer, 400)["code"] == "invalid_arguments"


async def test_an_offline_lease_is_attached_again_by_its_own_stream(
    server: Served,
) -> None:
    bob = await server.attach("bob")
    async with bob.stream(0) as stream:
        await stream.until("alive")
        good(await bob.post("offline", {}))
        assert all(name == "alive" for name, _ in await stream.rest())

    async with bob.stream(0) as stream:
        await stream.until("alive")
        assert refusal(await server.try_attach("bob", session_id="x"), 409)
