"""Tokens: their life, rotation, reuse, revocation; what is stored of them."""

from __future__ import annotations

from tests.fakes.message_server import BRIDGE, Served, caller, good, refusal

CONNECTIONS = "/api/oauth/mcp/connections"


async def test_an_access_token_ends_after_an_hour_and_is_refreshed(
    server: Served,
) -> None:
    bob = await server.attach("bob")
    server.clock.advance(61 * 60.0)

    expired = await bob.get("read")
    pair = good(await server.refresh(bob.child["refresh_token"]))
    bob.child = pair

    assert refusal(expired, 401)["code"] == "invalid_token"
    assert pair["token_type"] == "Bearer"
    assert pair["expires_in"] == 3600
    assert pair["scope"] == "messages:own"
    assert pair["access_token"].startswith("aw_cli_")
    assert len(pair["access_token"]) == len("aw_cli_") + 64
    assert pair["refresh_token"].startswith("aw_cli_refresh_")
    assert good(await bob.get("read"))["messages"] == []


async def test_a_stream_outlives_its_access_token(server: Served) -> None:
    alice, bob = await server.attach("alice"), await server.attach("bob")
    async with bob.stream(0) as stream:
        await stream.until("alive")
        server.clock.advance(61 * 60.0)
        await server.renew(alice)
        good(await alice.send("bob", "hello", "one"))

        assert (await stream.next_of("message"))["message"] == "hello"


async def test_a_used_refresh_token_revokes_its_whole_family(server: Served) -> None:
    bob = await server.attach("bob")
    first = bob.child["refresh_token"]
    await server.renew(bob)

    reused = await server.refresh(first)

    assert reused.status_code == 400
    assert reused.json() == {"error": "invalid_grant"}
    assert refusal(await bob.get("read"), 401)["code"] == "invalid_token"
    newest = await server.refresh(bob.child["refresh_token"])
    assert newest.json() == {"error": "invalid_grant"}


async def test_a_refresh_token_ends_after_thirty_days(server: Served) -> None:
    bob = await server.attach("bob")
    server.clock.advance(30 * 86_400.0)

    assert (await server.refresh(bob.child["refresh_token"])).status_code == 400


async def test_refreshing_keeps_a_child_alive_past_thirty_days(server: Served) -> None:
    bob = await server.attach("bob")
    for _ in range(3):
        server.clock.advance(20 * 86_400.0)
        await server.renew(bob)

    assert good(await bob.get("read"))["messages"] == []


async def test_only_the_refresh_grant_is_taken(server: Served) -> None:
    url = "/api/oauth/cli/token"

    other = await server.client.post(url, data={"grant_type": "password"})
    empty = await server.client.post(url, data={"grant_type": "refresh_token"})
    unknown = await server.refresh("aw_cli_refresh_" + "0" * 64)

    assert other.json() == {"error": "unsupported_grant_type"}
    assert empty.json() == {"error": "invalid_request"}
    assert unknown.json() == {"error": "invalid_grant"}
    assert {other.status_code, empty.status_code, unknown.status_code} == {400}


async def test_signing_out_ends_the_family_and_always_answers_alike(
    server: Served,
) -> None:
    alice, bob = await server.attach("alice"), await server.attach("bob")
    sent = good(await alice.send("bob", "hello", "one"))
    url = "/api/oauth/cli/revoke"

    known = await server.client.post(url, data={"token": alice.child["refresh_token"]})
    unknown = await server.client.post(url, data={"token": "nothing"})

    assert good(known) == good(unknown) == {}
    assert refusal(await alice.get("read"), 401)
    # Leaving is not unsaying.
    released = good(await bob.post("release", {"message_ids": [sent["message_id"]]}))
    assert released["released"] == [sent["message_id"]]


async def test_the_connections_of_the_account_are_listed_without_tokens(
    server: Served,
) -> None:
    bob = await server.attach("bob")

    answer = await server.client.get(CONNECTIONS, headers=server.headers)

    assert good(answer)["connections"] == [
        {
            "id": "oauth-local",
            "client_name": "this computer",
            "scopes": ["messages", "runs:execute"],
            "expires_at": None,
            "kind": "parent",
            "parent_id": None,
            "agent_name": None,
            "current": True,
        },
        {
            "id": bob.child["connection_id"],
            "client_name": "bob (script)",
            "scopes": ["messages:own"],
            "expires_at": "2026-10-21T14:13:20Z",
            "kind": "child",
            "parent_id": "oauth-local",
            "agent_name": "bob",
            "current": False,
        },
    ]
    assert "aw_cli_" not in answer.text


async def test_an_unknown_connection_is_not_revoked(server: Served) -> None:
    answer = await server.client.delete(
        f"{CONNECTIONS}/oauth-none", headers=server.headers
    )

    assert refusal(answer, 404)["code"] == "not_found"


async def test_a_child_sees_and_ends_no_connection(server: Served) -> None:
    bob = await server.attach("bob")

    listed = await server.client.get(CONNECTIONS, headers=bob.headers)
    ended = await server.client.delete(
        f"{CONNECTIONS}/oauth-local", headers=bob.headers
    )

    assert refusal(listed, 403)["code"] == "insufficient_scope"
    assert refusal(ended, 403)["code"] == "insufficient_scope"


async def test_missing_and_wrong_tokens_are_told_apart(server: Served) -> None:
    url = f"{BRIDGE}/hello"

    missing = await server.client.get(url)
    basic = await server.client.get(url, headers={"authorization": "Basic eDp5"})
    wrong = await server.client.get(url, headers=caller("aw_cli_" + "0" * 64))

    assert refusal(missing, 401)["code"] == "unauthorized"
    assert refusal(basic, 401)["code"] == "unauthorized"
    assert refusal(wrong, 401)["code"] == "invalid_token"


async def test_a_refresh_token_is_no_access_token(server: Served) -> None:
    bob = await server.attach("bob")

    answer = await server.client.get(
        f"{BRIDGE}/hello", headers=caller(bob.child["refresh_token"])
    )

    assert refusal(answer, 401)["code"] == "invalid_token"


async def test_no_token_is_in_the_database_or_the_log(server: Served) -> None:
    bob = await server.attach("bob")
    await server.renew(bob)

    stored = b"".join(
        path.read_bytes() for path in server.folder.iterdir() if path.is_file()
    )

    for token in (server.token, *bob.child.values()):
        if isinstance(token, str) and token.startswith("aw_"):
            assert token.encode() not in stored
            assert token not in server.log.getvalue()


async def test_every_lease_call_is_refused_to_the_parents_token(
    server: Served,
) -> None:
    bob = await server.attach("bob")
    bob.child = {"access_token": server.token}

    answers = [
        await bob.get("read"),
        await bob.get("stream"),
        await bob.get("sent/x"),
        await bob.post("offline", {}),
        await bob.send("bob", "x", "1"),
        await bob.put_purpose("x"),
        await bob.post("progress", {"offered_through": 0}),
        await bob.post("release", {"message_ids": ["x"]}),
    ]

    assert {refusal(answer, 403)["code"] for answer in answers} == {
        "insufficient_scope"
    }
