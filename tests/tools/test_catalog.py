"""The catalog: one definition for hosts, checks, guidance and the command line."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.facts import FACTS
from bridge.core.render import OfferContent, render_offer
from bridge.errors import Invalid
from bridge.tools.catalog import TOOLS, check, listing, schema, tool_named
from tests.core.examples import BOB, NONCE, message

SEND = tool_named("agent_message_send")
REPLY = tool_named("agent_message_reply")
GOOD_SEND = {"target": "agent:bob", "message": "hello", "submission_id": "one"}
GOOD_REPLY = {"message": "hello", "submission_id": "one", "message_id": "msg-1"}


def refused(name: str, arguments: dict[str, Any]) -> str:
    with pytest.raises(Invalid) as caught:
        check(tool_named(name), arguments)
    assert "nothing was done" in caught.value.message
    return caught.value.message


def test_the_tools_are_the_seven_verbs_of_a_session_and_no_other() -> None:
    assert {tool.verb: tool.name for tool in TOOLS} == {
        "send": "agent_message_send",
        "reply": "agent_message_reply",
        "read": "agent_message_read",
        "ack": "agent_message_ack",
        "peers": "agent_message_peers",
        "set_purpose": "agent_message_set_purpose",
        "status": "agent_message_status",
    }


def test_only_read_peers_and_status_are_shown_as_read_only() -> None:
    read_only = {tool.verb for tool in TOOLS if tool.is_read_only}

    assert read_only == {"read", "peers", "status"}


def test_every_fact_stands_in_a_description_word_for_word() -> None:
    descriptions = " ".join(tool.description for tool in TOOLS)

    assert [fact.key for fact in FACTS if fact.sentence not in descriptions] == []


def test_a_schema_stands_by_itself_and_refuses_what_it_does_not_name() -> None:
    """Hosts hand it to models whose dialects know no references and no unions."""
    for tool in TOOLS:
        shown = schema(tool)
        text = json.dumps(shown)

        assert shown["type"] == "object"
        assert shown["additionalProperties"] is False
        assert all("type" in each for each in shown["properties"].values())
        assert not any(word in text for word in ("$ref", "$defs", "anyOf", "oneOf"))


def test_the_listing_is_what_hosts_expect() -> None:
    shown = json.loads(listing())["tools"]

    assert [tool["name"] for tool in shown] == [tool.name for tool in TOOLS]
    assert shown[0]["inputSchema"] == schema(SEND)
    assert shown[0]["inputSchema"]["properties"]["message"]["maxLength"] == 20_000
    assert {tool["annotations"]["destructiveHint"] for tool in shown} == {False}
    assert b"\n" not in listing()


def test_the_list_beside_the_mcp_child_is_the_catalogs() -> None:
    """It stands in while the bridge is stopped."""
    beside = Path(__file__).parents[2] / "hooks" / "tools.json"

    assert json.loads(beside.read_bytes()) == json.loads(listing())


def test_a_check_fills_in_defaults_and_trims() -> None:
    assert check(SEND, GOOD_SEND | {"message": "  hello\n"}) == GOOD_SEND
    assert check(REPLY, GOOD_REPLY) == GOOD_REPLY | {"inbox_id": ""}
    assert check(tool_named("agent_message_read"), {"after": 5}) == {
        "inbox_id": "",
        "after": 5,
        "start": 0,
        "limit": 100,
        "wait_s": 0,
    }
    assert check(tool_named("agent_message_status"), {"id": "msg-1"}) == {
        "id_": "msg-1"
    }
    assert check(tool_named("agent_message_peers"), {}) == {}


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("agent_message_send", {}, "target"),
        ("agent_message_send", GOOD_SEND | {"message": " \n"}, "message"),
        ("agent_message_send", GOOD_SEND | {"message": "x" * 20_001}, "20000"),
        ("agent_message_send", GOOD_SEND | {"message": 1}, "str"),
        ("agent_message_send", GOOD_SEND | {"submission_id": ""}, "submission_id"),
        ("agent_message_send", GOOD_SEND | {"submission_id": "a\nb"}, "submission_id"),
        ("agent_message_send", GOOD_SEND | {"submission_id": "x" * 129}, "128"),
        ("agent_message_send", GOOD_SEND | {"session_id": "other"}, "session_id"),
        ("agent_message_reply", GOOD_REPLY | {"inbox_id": "inbox-1"}, "Exactly one"),
        ("agent_message_reply", GOOD_REPLY | {"message_id": ""}, "Exactly one"),
        ("agent_message_ack", {"message_id": "m", "delivery": "stored"}, "stored"),
        ("agent_message_ack", {"message_id": "", "delivery": "admitted"}, "message_id"),
        ("agent_message_read", {"limit": 101}, "limit"),
        ("agent_message_read", {"wait_s": 26}, "wait_s"),
        ("agent_message_read", {"after": -1}, "after"),
        ("agent_message_read", {"after": True}, "after"),
        ("agent_message_set_purpose", {"purpose": "x" * 513}, "512"),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong(
    name: str, arguments: dict[str, Any], word: str
) -> None:
    assert word in refused(name, arguments)


def test_an_unknown_tool_is_told_which_there_are() -> None:
    with pytest.raises(Invalid, match="no tool") as caught:
        tool_named("agent_attach")

    assert "agent_message_send" in caught.value.hint


@given(st.dictionaries(st.text(), st.none() | st.text() | st.integers() | st.floats()))
def test_any_arguments_are_checked_or_refused(arguments: dict[str, Any]) -> None:
    for tool in TOOLS:
        with suppress(Invalid):
            assert set(check(tool, arguments)) == set(tool.arguments.__struct_fields__)


def test_a_call_as_an_offer_writes_it_is_a_call_that_is_taken() -> None:
    offer = render_offer(OfferContent(BOB, NONCE, (message(),)))
    shown = dict(re.findall(r"(agent_message_\w+)\(([^()]*)\)", offer))

    assert set(shown) == {"agent_message_ack", "agent_message_reply"}
    for name, arguments in shown.items():
        words = dict.fromkeys(re.findall(r"(\w+)(?:=|,|$)", arguments), "admitted")
        check(tool_named(name), words)
