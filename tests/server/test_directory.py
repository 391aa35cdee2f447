"""The directory, and the hello."""

from __future__ import annotations

from tests.fakes.message_server import BRIDGE, Served, good


async def test_the_directory_is_the_same_for_the_person_and_an_agent(
    server: Served,
) -> None:
    bob = await server.attach("bob")
    await server.attach("alice", purpose="Writes")

    mine = good(await server.client.get(f"{BRIDGE}/agents", headers=bob.headers))
    theirs = good(await server.client.get(f"{BRIDGE}/agents", headers=server.headers))

    assert mine == theirs
    assert set(mine["agents"][0]) == {
        "agent_id",
        "name",
        "provider",
        "purpose",
        "connected",
        "since",
    }
    assert [agent["name"] for agent in mine["agents"]] == ["alice", "bob"]


async def test_the_hello_tells_version_and_limits(server: Served) -> None:
    answer = good(await server.client.get(f"{BRIDGE}/hello", headers=server.headers))

    assert answer["version"] == answer["min_client"] == "0.1.0"
    assert answer["account"] == "local"
    assert answer["connection_id"] == "oauth-local"
    assert answer["limits"]["message_characters"] == 20_000
    assert answer["limits"]["heartbeat_s"] == 10
    assert "stream" in answer["features"]
