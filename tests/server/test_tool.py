"""The public messages tool."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.message_server import CALL, Served, caller, good, refusal

TOOLS = "/api/external/v1/tools"


async def test_the_catalog_shows_one_tool_with_an_object_schema(
    server: Served,
) -> None:
    [tool] = good(await server.client.get(TOOLS, headers=server.headers))["tools"]

    schema = tool["inputSchema"]
    assert tool["name"] == "messages"
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["action"]
    assert schema["properties"]["action"]["enum"] == [
        "register",
        "list_agents",
        "send",
        "read",
        "state",
        "unregister",
    ]
    assert set(schema["properties"]) == {
        "action",
        "agent_name",
        "allowed_connection_ids",
        "message",
        "target",
        "inbox_id",
        "submission_id",
        "after",
        "limit",
        "wait_seconds",
    }


async def test_an_attached_agent_does_not_reach_the_tool(server: Served) -> None:
    bob = await server.attach("bob")

    listed = await server.client.get(TOOLS, headers=bob.headers)
    called = await server.client.post(
        CALL,
        headers=bob.headers,
        json={"name": "messages", "arguments": {"action": "list_agents"}},
    )

    assert refusal(listed, 403)["code"] == "insufficient_scope"
    assert refusal(called, 403)["code"] == "insufficient_scope"


async def test_registering_again_keeps_the_list(server: Served) -> None:
    await server.second_login("oauth-second")
    first = good(
        await server.call(
            "register", agent_name="box", allowed_connection_ids=["oauth-second"]
        )
    )

    again = good(await server.call("register", agent_name="BOX"))
    narrowed = good(
        await server.call("register", agent_name="box", allowed_connection_ids=[])
    )

    assert first == {
        "agent_id": first["agent_id"],
        "agent_name": "box",
        "created": True,
        "allowed_connection_ids": ["oauth-local", "oauth-second"],
    }
    assert again == {**first, "created": False}
    assert narrowed["allowed_connection_ids"] == ["oauth-local"]


async def test_the_list_keeps_the_agents_own_child(server: Served) -> None:
    bob = await server.attach("bob")

    listed = good(
        await server.call("register", agent_name="bob", allowed_connection_ids=[])
    )

    assert listed["allowed_connection_ids"] == sorted(
        ["oauth-local", bob.child["connection_id"]]
    )


async def test_only_live_connections_of_the_account_go_on_a_list(
    server: Served,
) -> None:
    bob = await server.attach("bob")
    foreign = bob.child["connection_id"]

    for connection_id in ("oauth-none", foreign):
        answer = await server.call(
            "register", agent_name="box", allowed_connection_ids=[connection_id]
        )
        assert refusal(answer, 422)["code"] == "unknown_connection"
    # What was refused registered nothing.
    assert "box" not in await server.agents()


async def test_a_login_off_the_list_uses_no_name(server: Served) -> None:
    good(await server.call("register", agent_name="box"))
    good(await server.call("register", agent_name="worker"))
    server.token = await server.second_login("oauth-second")

    answers = [
        await server.call("register", agent_name="box"),
        await server.call("unregister", agent_name="box"),
        await server.call("read", agent_name="box"),
        await server.call(
            "send", agent_name="worker", target="agent:box", message="hello"
        ),
    ]

    assert {refusal(answer, 403)["code"] for answer in answers} == {"not_allowed"}


async def test_a_mailbox_only_name_sends_and_receives_by_reading(
    server: Served,
) -> None:
    good(await server.call("register", agent_name="box"))
    bob = await server.attach("bob")

    sent = good(
        await server.call("send", agent_name="box", target="agent:bob", message="a job")
    )
    answer = good(await bob.reply(sent["inbox_id"], "done", "one"))
    mailbox = good(await server.call("read", agent_name="box", wait_seconds=5))
    inbox = good(await server.call("read", agent_name="box", inbox_id=sent["inbox_id"]))

    assert sent["recipient"]["state"] == "offline"
    assert answer["recipient"] == {
        "name": "box",
        "state": "mailbox",
        "since": None,
        "offline_since": None,
    }
    assert [m["message"] for m in mailbox["messages"]] == ["done"]
    assert mailbox["messages"][0]["reply_address"] == sent["inbox_id"]
    assert [m["message"] for m in inbox["messages"]] == ["done"]


async def test_a_send_by_call_and_by_attachment_are_the_same_path(
    server: Served,
) -> None:
    alice, bob = await server.attach("alice"), await server.attach("bob")

    first = good(await alice.send("agent:bob", "hello", "one"))
    again = good(
        await server.call(
            "send",
            agent_name="alice",
            target="agent:bob",
            message="hello",
            submission_id="one",
        )
    )

    assert again == first
    assert len(good(await bob.get("read"))["messages"]) == 1


async def test_a_nameless_login_opens_a_new_inbox_each_time_but_for_retries(
    server: Served,
) -> None:
    bob = await server.attach("bob")

    async def send(**more: Any) -> Any:
        return good(await server.call("send", target="agent:bob", message="hi", **more))

    first, second = await send(), await send()
    third, again = await send(submission_id="x"), await send(submission_id="x")

    assert len({first["inbox_id"], second["inbox_id"], third["inbox_id"]}) == 3
    assert again == third
    page = good(await bob.get("read"))
    assert {m["sender"] for m in page["messages"]} == {"account:local"}


async def test_an_agent_answers_a_nameless_login(server: Served) -> None:
    bob = await server.attach("bob")
    sent = good(await server.call("send", target="agent:bob", message="question"))
    inbox = sent["inbox_id"]

    answer = good(await bob.reply(inbox, "answer", "one"))
    page = good(await server.call("read", inbox_id=inbox))
    more = good(await server.call("send", inbox_id=inbox, message="thanks"))

    assert answer["recipient"]["name"] == "account:local"
    assert [m["message"] for m in page["messages"]] == ["answer"]
    assert more["inbox_id"] == inbox
    assert len(good(await bob.get("read", inbox_id=inbox))["messages"]) == 2


async def test_the_list_of_agents_shows_who_may_use_them(server: Served) -> None:
    bob = await server.attach("bob")
    good(await server.call("register", agent_name="Box"))

    listed = good(await server.call("list_agents"))["agents"]

    assert [agent["name"] for agent in listed] == ["bob", "Box"]
    assert listed[0]["allowed_connection_ids"] == sorted(
        ["oauth-local", bob.child["connection_id"]]
    )
    assert listed[1]["provider"] == ""


async def test_unregistering_frees_the_name_for_a_new_identity(server: Served) -> None:
    first = good(await server.call("register", agent_name="box"))

    gone = good(await server.call("unregister", agent_name="BOX"))
    second = good(await server.call("register", agent_name="box"))

    assert gone == {"unregistered": True, "agent_name": "box"}
    assert second["agent_id"] != first["agent_id"]
    assert refusal(await server.call("unregister", agent_name="none"), 404)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "shell", "arguments": {"action": "send"}}, 404, "unknown_tool"),
        ({"name": "messages"}, 400, "invalid_arguments"),
        (
            {"name": "messages", "arguments": {"action": "fly"}},
            400,
            "invalid_arguments",
        ),
        (
            {"name": "messages", "arguments": {"action": "list_agents", "x": 1}},
            400,
            "invalid_arguments",
        ),
        (
            {"name": "messages", "arguments": {"action": "read", "after": -1}},
            400,
            "invalid_arguments",
        ),
        (
            {"name": "messages", "arguments": {"action": "read"}},
            400,
            "invalid_arguments",
        ),
        (
            {"name": "messages", "arguments": {"action": "list_agents"}, "user": "x"},
            400,
            "invalid_arguments",
        ),
        ([], 400, "invalid_arguments"),
    ],
)
async def test_a_call_of_the_wrong_form_is_refused(
    server: Served, body: Any, status: int, code: str
) -> None:
    answer = await server.client.post(CALL, headers=server.headers, json=body)

    assert refusal(answer, status)["code"] == code


async def test_the_tool_needs_a_good_token(server: Served) -> None:
    assert refusal(await server.client.get(TOOLS), 401)["code"] == "unauthorized"
    answer = await server.client.get(TOOLS, headers=caller("x"))
    assert refusal(answer, 401)["code"] == "invalid_token"
