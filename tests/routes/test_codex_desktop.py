"""Codex's desktop app, as its published facts have it: a double, not the app."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import OfferId, SessionId
from bridge.core.records import OfferOutcome
from bridge.core.routing import Parcel, Part, Reached
from bridge.errors import BridgeError
from bridge.peer import Peer
from bridge.routes.codex_desktop import LABEL, OUTPUT_BYTES, CodexDesktop, turn_of
from bridge.routes.codex_ipc import FRAME_LIMIT
from tests.fakes.codex_desktop import (
    HANG_UP,
    OWNER,
    SILENCE,
    ScriptedDesktop,
    desktop,
    framed,
)

THREAD = "01a227d0-b506-7ad1-916e-6cc3b2b95a06"
PARTS = (Part("head", "who you are"), Part("msg-1", "漢" * 8000), Part("foot", "help"))
PARCEL = Parcel(
    OfferId("offer-1"),
    SessionId(THREAD),
    "\n\n".join(part.text for part in PARTS),
    "0123456789abcdef",
    PARTS,
)
START = "thread-follower-start-turn"
EMITTED, NOT_EMITTED, UNKNOWN = (
    OfferOutcome.EMITTED,
    OfferOutcome.NOT_EMITTED,
    OfferOutcome.UNKNOWN,
)


def way_to(app: ScriptedDesktop) -> CodexDesktop:
    def is_app(peer: Peer) -> bool:
        return peer.pid == os.getpid()

    return CodexDesktop(SessionId(THREAD), app.path, is_app, os.urandom)


def no(error: str) -> dict[str, object]:
    return {"resultType": "error", "error": error, "result": None}


async def test_an_idle_chat_gets_one_turn_through_its_owner() -> None:
    async with desktop() as app:
        assert await way_to(app).offer(PARCEL) == Reached(EMITTED)

    asked = [each for each in app.heard if each["type"] == "request"]
    assert [(each["method"], each["version"]) for each in asked] == [
        ("initialize", 0),
        ("thread-owner-discovery", 1),
        (START, 2),
    ]
    assert [each["sourceClientId"] for each in asked] == [
        "initializing-client",
        "client-7",
        "client-7",
    ]
    assert len({each["requestId"] for each in asked}) == 3
    assert asked[1]["params"] == {"hostId": "local", "conversationId": THREAD}
    assert asked[2]["targetClientId"] == OWNER
    assert asked[2]["params"]["conversationId"] == THREAD


async def test_the_content_is_untrusted_tool_output_and_whole() -> None:
    turn: Any = turn_of(PARCEL)
    (text,) = turn["request"]["input"]
    (element,) = text["text_elements"]
    shown = element["placeholder"].removeprefix("codex-untrusted-app-input:")
    calls, outputs = (
        turn["context"]["responseItems"][::2],
        turn["context"]["responseItems"][1::2],
    )

    assert text["text"] == LABEL
    assert element["byteRange"] == {"start": 0, "end": len(LABEL)}
    assert json.loads(shown)["message"] == {
        "source": "mcp_app",
        "sourceId": "agentworks",
        "text": PARCEL.text,
    }
    assert turn["request"]["clientUserMessageId"] == "offer-1"
    assert turn["context"]["inheritThreadSettings"] is True
    assert {(each["namespace"], each["name"]) for each in calls} == {
        ("agentworks", "agent_message")
    }
    assert [each["call_id"] for each in calls] == [each["call_id"] for each in outputs]
    texts = [each["output"][0]["text"] for each in outputs]
    assert "".join(texts) == "".join(part.text for part in PARTS)
    assert max(len(each.encode()) for each in texts) <= OUTPUT_BYTES
    assert set(turn["request"]) == {"threadId", "clientUserMessageId", "input"}


async def test_we_offer_to_handle_nothing() -> None:
    async with desktop() as app:
        await way_to(app).check()

    answers = [e for e in app.heard if e["type"] == "client-discovery-response"]
    assert answers[0] == {
        "type": "client-discovery-response",
        "requestId": "theirs",
        "response": {"canHandle": False},
    }


async def test_a_chat_at_work_takes_nothing_and_may_be_asked_later() -> None:
    async with desktop() as app:
        app.is_busy = True
        reached = await way_to(app).offer(PARCEL)

    assert (reached.outcome, reached.is_over, reached.is_busy) == (
        NOT_EMITTED,
        True,
        True,
    )
    assert len(app.requests(START)) == 1


@pytest.mark.parametrize(
    "error", ["no-client-found", "untrusted-app-input-unsupported"]
)
async def test_a_sure_no_is_not_emitted(error: str) -> None:
    async with desktop(thread_follower_start_turn=no(error)) as app:
        reached = await way_to(app).offer(PARCEL)

    assert (reached.outcome, reached.is_busy) == (NOT_EMITTED, False)


@pytest.mark.parametrize(
    "answer",
    [
        SILENCE,
        HANG_UP,
        no("client-disconnected"),
        no("anything else"),
        {"result": {}},
        {"result": {"result": {"turn": {}}}},
        {"handledByClientId": "another"},
        {"handledByClientId": None},
        b"\x05\x00\x00\x00ab",
        struct.pack("<I", FRAME_LIMIT + 1),
        framed("no object"),
    ],
)
async def test_any_other_answer_is_unknown_and_never_tried_again(
    answer: object, autojump_clock: object
) -> None:
    async with desktop(thread_follower_start_turn=answer) as app:
        reached = await way_to(app).offer(PARCEL)

    assert (reached.outcome, reached.is_over) == (UNKNOWN, True)
    assert reached.reason.endswith(".")
    assert len(app.requests(START)) == 1


REFUSED: dict[str, dict[str, object]] = {
    "no chat": {"thread-owner-discovery": no("no-client-found")},
    "no owner": {"thread-owner-discovery": {"handledByClientId": None}},
    "no capability": {"thread-owner-discovery": {"result": {}}},
    "capability off": {
        "thread-owner-discovery": {"result": {"supportsUntrustedAppInput": False}}
    },
    "capability odd": {
        "thread-owner-discovery": {"result": {"supportsUntrustedAppInput": "yes"}}
    },
    "silence": {"thread-owner-discovery": SILENCE},
    "hangs up": {"thread-owner-discovery": HANG_UP},
    "no greeting": {"initialize": no("no")},
    "no client id": {"initialize": {"result": {"clientId": None}}},
    "deaf": {"initialize": SILENCE},
}


@pytest.mark.parametrize("case", REFUSED)
async def test_nothing_is_handed_to(case: str, autojump_clock: object) -> None:
    async with desktop() as app:
        app.answers |= REFUSED[case]
        way = way_to(app)
        reached = await way.offer(PARCEL)
        is_open = await way.is_open()

    assert (reached.outcome, reached.is_over) == (NOT_EMITTED, True)
    assert not is_open
    assert app.requests(START) == []


async def test_another_program_at_that_place_is_told_nothing() -> None:
    async with desktop() as app:
        way = CodexDesktop(SessionId(THREAD), app.path, lambda _: False, os.urandom)
        with pytest.raises(BridgeError, match="another program listens"):
            await way.check()

    assert app.heard == []


async def test_a_socket_in_a_folder_that_others_may_change_is_not_used() -> None:
    async with desktop() as app:
        os.chmod(os.path.dirname(app.path), 0o777)
        with pytest.raises(BridgeError, match="others may change the folder"):
            await way_to(app).check()

    assert app.heard == []


@given(st.binary(max_size=200), st.sampled_from(["initialize", START]))
async def test_bytes_of_any_shape_are_no_error_of_ours(raw: bytes, method: str) -> None:
    async with desktop() as app:
        # What comes after it is never awaited: a length that promises more ends.
        app.answers[method] = raw + b"\xff\xff\xff\xff" * 60
        reached = await way_to(app).offer(PARCEL)

    assert reached.outcome is (NOT_EMITTED if method == "initialize" else UNKNOWN)
    assert len(app.requests(START)) == (method == START)
