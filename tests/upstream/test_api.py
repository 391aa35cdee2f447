"""Every call: its path, what it says, and what it makes of the answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio

from bridge.core.ids import AttachmentId, InboxId, MessageId, SubmissionId
from bridge.core.records import Receipt
from bridge.core.tokens import ChildTokens
from bridge.errors import Refused, Unavailable, Unknown
from bridge.upstream import api, shapes
from tests.fakes.clock import FakeClock
from tests.fakes.scripted_server import (
    HANG,
    Answer,
    ScriptedServer,
    refused,
    said,
)
from tests.upstream.callers import Callers

ATTACHMENT_ID = AttachmentId("att-1")
LEASE = "/api/external/v1/bridge/attachments/att-1"
AGENT = {"name": "bob", "provider": "claude", "connected": True, "since": None}


async def test_hello_tells_what_the_server_is(calling: Callers) -> None:
    server = ScriptedServer(said({"version": "0.1.0", "limits": {"read_page": 100}}))
    found = await api.hello(await calling(server))

    assert server.paths() == ["GET /api/external/v1/bridge/hello"]
    assert found.version == "0.1.0"
    assert found.limits == {"read_page": 100}


async def test_the_tool_catalog_is_given_as_it_stands(calling: Callers) -> None:
    server = ScriptedServer(said({"tools": []}))

    assert await api.tools(await calling(server)) == {"tools": []}
    assert server.paths() == ["GET /api/external/v1/tools"]


def lease_answer(**changes: object) -> dict[str, object]:
    return {
        "attachment_id": "att-1",
        "agent_id": "agent-1",
        "name": "bob",
        "state": "attached",
        "offered_through": 500_000_000,
        "roster": [AGENT],
        "policy": "current",
        "child": None,
        **changes,
    }


async def test_attach_gives_the_lease_and_tokens_with_their_end(
    calling: Callers, fake_clock: FakeClock
) -> None:
    child = {
        "connection_id": "conn-1",
        "access_token": "cnry-a",
        "refresh_token": "cnry-r",
        "expires_in": 3600,
    }
    server = ScriptedServer(said(lease_answer(child=child)))
    request = shapes.AttachRequest("claude", "session-1", "host-1", name="bob")
    lease = await api.attach(await calling(server), request)

    assert server.paths() == ["POST /api/external/v1/bridge/attachments"]
    assert server.asked() == {
        "provider": "claude",
        "session_id": "session-1",
        "host_id": "host-1",
        "name": "bob",
    }
    end = fake_clock.wall() + 3600
    assert lease.child == ChildTokens("conn-1", "cnry-a", "cnry-r", end)
    assert lease.roster == (shapes.Agent("bob", "claude", connected=True),)
    assert "cnry" not in repr(lease)
    assert "cnry" not in repr(msgspec.convert(child, shapes.Grant))


async def test_attach_says_the_persons_yes_and_which_tokens_are_held(
    calling: Callers,
) -> None:
    server = ScriptedServer(said(lease_answer(state="held")))
    request = shapes.AttachRequest(
        "claude", "s", "h", purpose="p", confirm=True, child_id="conn-1"
    )
    lease = await api.attach(await calling(server), request)

    assert lease.state == "held"
    assert lease.child is None
    asked = server.asked()
    assert (asked["confirm"], asked["child_id"], asked["purpose"]) == (
        True,
        "conn-1",
        "p",
    )


async def test_a_held_name_says_who_holds_it(calling: Callers) -> None:
    holder = {"name": "bob", "provider": "codex", "since": "2026-11-29T16:05:29Z"}
    server = ScriptedServer(refused(409, "name_held", holder=holder))
    request = shapes.AttachRequest("claude", "s", "h")

    with pytest.raises(Refused) as caught:
        await api.attach(await calling(server), request)
    assert caught.value.details["holder"] == holder


async def test_the_ends_of_a_lease_are_told(calling: Callers) -> None:
    server = ScriptedServer(said({"detached": True, "state": "offline"}))
    caller = await calling(server)
    await api.report_offline(caller, ATTACHMENT_ID)
    await api.detach(caller, ATTACHMENT_ID)

    assert server.paths() == [f"POST {LEASE}/offline", f"DELETE {LEASE}"]


async def test_progress_is_told_and_what_the_server_keeps_given_back(
    calling: Callers,
) -> None:
    server = ScriptedServer(said({"offered_through": 9}))

    assert await api.report_progress(await calling(server), ATTACHMENT_ID, 7) == 9
    assert server.paths() == [f"POST {LEASE}/progress"]
    assert server.asked() == {"offered_through": 7}


async def test_a_read_pages_the_mailbox_or_one_inbox(
    calling: Callers, autojump_clock: trio.testing.MockClock
) -> None:
    message = {
        "inbox_id": "inbox-1",
        "conversation_id": "c",
        "message_id": "msg-1",
        "sequence": 3,
        "sender": "alice",
        "message": "hello",
        "sent_at": "2026-11-29T16:05:29Z",
        "delivery": "stored",
        "delivery_error": "",
    }
    page = b'{"messages":[%s],"next_cursor":3}' % msgspec.json.encode(message)
    server = ScriptedServer(Answer(200, {}, [24.0, page]))
    caller = await calling(server)
    found = await api.read(
        caller, ATTACHMENT_ID, InboxId("inbox-1"), after=2, limit=5, wait_s=25
    )

    assert found.next_cursor == 3
    assert found.messages[0].message == "hello"
    assert dict(server.requests[0].url.params) == {
        "after": "2",
        "limit": "5",
        "wait_s": "25",
        "inbox_id": "inbox-1",
    }
    await api.read(caller, ATTACHMENT_ID, wait_s=25)
    assert "inbox_id" not in server.requests[1].url.params


async def test_a_release_counts_from_when_it_was_asked_for(
    calling: Callers, fake_clock: FakeClock
) -> None:
    answer = {
        "released": ["msg-1"],
        "withheld": [{"id": "msg-2", "reason": "not_found"}],
        "valid_s": 30,
    }
    server = ScriptedServer(said(answer))
    ids = [MessageId("msg-1"), MessageId("msg-2")]
    found, asked_at = await api.ask_release(await calling(server), ATTACHMENT_ID, ids)

    assert found.released == ("msg-1",)
    assert found.withheld == (shapes.Withheld(MessageId("msg-2"), "not_found"),)
    assert asked_at == fake_clock.running()
    assert server.asked() == {"message_ids": ["msg-1", "msg-2"]}


async def test_receipts_go_out_in_order_with_their_evidence(calling: Callers) -> None:
    answer = {
        "recorded": [{"message_id": "msg-1", "delivery": "admitted", "observed": ""}],
        "unknown": ["msg-2"],
    }
    server = ScriptedServer(said(answer))
    receipts = [
        Receipt(ATTACHMENT_ID, MessageId("msg-1"), "admitted", 1.5, "agent"),
        Receipt(ATTACHMENT_ID, MessageId("msg-2"), "offered", 2.0),
    ]
    found = await api.send_receipts(await calling(server), ATTACHMENT_ID, receipts)

    assert found.unknown == ("msg-2",)
    assert server.paths() == [f"POST {LEASE}/receipts"]
    assert server.asked() == {
        "receipts": [
            {
                "message_id": "msg-1",
                "delivery": "admitted",
                "at": 1.5,
                "evidence": "agent",
            },
            {"message_id": "msg-2", "delivery": "offered", "at": 2.0},
        ]
    }


SENT = {
    "accepted": True,
    "status": "accepted",
    "message_id": "msg-9",
    "inbox_id": "inbox-1",
    "conversation_id": "c",
    "sequence": 4,
    "next": "wait",
    "recipient": {"name": "bob", "state": "offline", "since": "2026-11-29T16:05:29Z"},
}


@pytest.mark.parametrize(
    ("place", "said_place"),
    [
        ({"target": "agent:bob"}, {"target": "agent:bob"}),
        ({"inbox_id": InboxId("inbox-1")}, {"inbox_id": "inbox-1"}),
    ],
)
async def test_a_send_names_its_place_and_its_submission(
    calling: Callers, place: dict[str, Any], said_place: dict[str, str]
) -> None:
    server = ScriptedServer(said(SENT))
    found = await api.send(
        await calling(server), ATTACHMENT_ID, "hi", SubmissionId("sub-1"), **place
    )

    assert server.paths() == [f"POST {LEASE}/send"]
    assert server.asked() == said_place | {"message": "hi", "submission_id": "sub-1"}
    assert found.message_id == "msg-9"
    assert found.recipient.state == "offline"


async def test_a_send_without_an_answer_is_unknown(
    calling: Callers, autojump_clock: trio.testing.MockClock
) -> None:
    caller = await calling(ScriptedServer(Answer(200, {}, [HANG])))

    with pytest.raises(Unknown):
        await api.send(caller, ATTACHMENT_ID, "hi", SubmissionId("s"), "agent:bob")


async def test_an_unknown_target_comes_with_the_nearest_names(calling: Callers) -> None:
    caller = await calling(ScriptedServer(refused(404, "not_found", nearest=["bob"])))

    with pytest.raises(Refused) as caught:
        await api.send(caller, ATTACHMENT_ID, "hi", SubmissionId("s"), "agent:bop")
    assert caught.value.details["nearest"] == ["bob"]


@pytest.mark.parametrize(
    ("submission_id", "path"),
    [
        ("sub-1", b"sub-1"),
        ("a/b ?#%..", b"a%2Fb%20%3F%23%25.."),
        ("~`{}^", b"~%60%7B%7D%5E"),
    ],
)
async def test_a_submission_id_of_any_characters_stays_one_part_of_the_path(
    calling: Callers, submission_id: str, path: bytes
) -> None:
    answer = {**SENT, "delivery": "stored", "submission_id": submission_id}
    server = ScriptedServer(said(answer))
    found = await api.sent(await calling(server), ATTACHMENT_ID, submission_id)

    assert server.requests[0].url.raw_path == f"{LEASE}/sent/".encode() + path
    assert found.submission_id == submission_id
    assert found.delivery == "stored"


async def test_a_purpose_is_set_or_must_wait(calling: Callers) -> None:
    server = ScriptedServer(
        said({"purpose": "review"}), refused(429, "purpose_rate", {"Retry-After": "40"})
    )
    caller = await calling(server)

    assert await api.set_purpose(caller, ATTACHMENT_ID, "review") == "review"
    assert server.paths() == [f"PUT {LEASE}/purpose"]
    with pytest.raises(Unavailable) as caught:
        await api.set_purpose(caller, ATTACHMENT_ID, "other")
    assert caught.value.retry_after_s == 40


async def test_the_directory_lists_the_accounts_names(calling: Callers) -> None:
    server = ScriptedServer(said({"agents": [AGENT | {"agent_id": "agent-1"}]}))
    [found] = await api.agents(await calling(server))

    assert server.paths() == ["GET /api/external/v1/bridge/agents"]
    assert (found.name, found.agent_id) == ("bob", "agent-1")


async def test_the_public_tool_is_called_with_its_arguments(calling: Callers) -> None:
    server = ScriptedServer(said({"agents": []}))
    caller = await calling(server)

    assert await api.call_messages(caller, {"action": "list_agents"}) == {"agents": []}
    assert server.paths() == ["POST /api/external/v1/call"]
    assert server.asked() == {
        "name": "messages",
        "arguments": {"action": "list_agents"},
    }


@pytest.mark.parametrize(("action", "kind"), [("send", Unknown), ("read", Unavailable)])
async def test_only_a_send_through_the_public_tool_can_be_unknown(
    calling: Callers,
    autojump_clock: trio.testing.MockClock,
    action: str,
    kind: type[Exception],
) -> None:
    caller = await calling(ScriptedServer(Answer(200, {}, [HANG])))

    with pytest.raises(kind):
        await api.call_messages(caller, {"action": action}, wait_s=25)
    assert trio.current_time() == 35


async def test_a_refused_parent_token_is_not_tried_again(calling: Callers) -> None:
    server = ScriptedServer(refused(401, "invalid_token"))

    with pytest.raises(Refused):
        await api.hello(await calling(server))
    assert len(server.requests) == 1
