"""Codex's app-server: who is asked, what is handed over, what its answers mean.

The answers are recorded from Codex 0.171.0; the socket and its frames are real.
"""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import OfferId, SessionId
from bridge.core.records import OfferOutcome
from bridge.core.routing import Parcel, Part, Reached
from bridge.errors import BridgeError
from bridge.peer import Peer
from bridge.routes.codex_app_server import (
    VALUE_BYTES,
    CodexAppServer,
    announced,
    context_of,
    pieces,
)
from tests.fakes.codex_server import (
    HANG_UP,
    RECORDED,
    SILENCE,
    THREAD_ID,
    Fault,
    InTurn,
    ScriptedCodex,
    Text,
    codex_server,
)

NONCE = "0123456789abcdef"
PARTS = (Part("head", "who you are"), Part("msg-1", "a body"), Part("foot", "help"))
PARCEL = Parcel(
    OfferId("offer-1"),
    SessionId(THREAD_ID),
    "\n\n".join(part.text for part in PARTS),
    NONCE,
    PARTS,
)
EMITTED, NOT_EMITTED, UNKNOWN = (
    OfferOutcome.EMITTED,
    OfferOutcome.NOT_EMITTED,
    OfferOutcome.UNKNOWN,
)
HANDS_OVER = {"turn/start", "turn/steer", "thread/queue/add", "thread/inject_items"}


def is_own(peer: Peer) -> bool:
    return peer.pid == os.getpid()


def way_to(server: ScriptedCodex, *, may_queue: bool = False) -> CodexAppServer:
    return CodexAppServer(SessionId(THREAD_ID), server.path, is_own, may_queue)


def thread(name: str = "thread_idle", **changes: object) -> dict[str, Any]:
    """A recorded thread, changed; our thread's ids unless told otherwise."""
    read: dict[str, Any] = copy.deepcopy(RECORDED[name])
    read["thread"] |= {"id": THREAD_ID, "sessionId": THREAD_ID} | changes
    return read


# ---- handing over -----------------------------------------------------------------


async def test_an_idle_thread_is_started_with_untrusted_parts_and_shows_it() -> None:
    async with codex_server() as server:
        reached = await way_to(server).offer(PARCEL)

    assert reached == Reached(EMITTED, evidence="seen")
    (said,) = server.params("turn/start")
    assert said == {
        "threadId": THREAD_ID,
        "clientUserMessageId": "offer-1",
        "input": [{"type": "text", "text": announced(NONCE)}],
        "additionalContext": {
            f"agentworks.offer-1.{place:03}.000": {
                "kind": "untrusted",
                "name": "agent_message",
                "value": part.text,
            }
            for place, part in enumerate(PARTS)
        },
    }
    assert server.methods[:3] == ["initialize", "initialized", "thread/read"]


async def test_what_joins_a_turn_is_an_offer_and_is_not_waited_for() -> None:
    async with codex_server(thread__read=RECORDED["thread_running"]) as server:
        assert await way_to(server).offer(PARCEL) == Reached(EMITTED)

    assert len(server.params("turn/start")) == 1
    assert "thread/items/list" not in server.methods


@pytest.mark.parametrize("shown", [{"data": []}, HANG_UP, Fault(code=-32603)])
async def test_what_is_not_shown_is_an_offer_all_the_same(shown: object) -> None:
    """A hook of the person's may block it: it then goes with the next turn."""
    async with codex_server(thread__items__list=shown) as server:
        assert await way_to(server).offer(PARCEL) == Reached(EMITTED)


async def test_another_clients_text_is_no_evidence() -> None:
    other = copy.deepcopy(RECORDED["items"])
    for row in other["data"]:
        row["item"]["clientId"] = "offer-2"
    not_yet = Fault(code=-32601, message="thread/items/list is not supported yet")
    shown = InTurn([not_yet, other, {"data": []}, RECORDED["items"]])
    async with codex_server(thread__items__list=shown) as server:
        reached = await way_to(server).offer(PARCEL)

    assert reached.evidence == "seen"
    assert server.methods.count("thread/items/list") == 4


async def test_a_named_servers_queue_takes_the_whole_text_as_admitted() -> None:
    async with codex_server(thread__read=RECORDED["thread_elsewhere"]) as server:
        reached = await way_to(server, may_queue=True).offer(PARCEL)

    assert reached == Reached(EMITTED, evidence="native_queue")
    (said,) = server.params("thread/queue/add")
    assert said == {
        "threadId": THREAD_ID,
        "clientUserMessageId": "offer-1",
        "input": [{"type": "text", "text": PARCEL.text}],
    }


@pytest.mark.parametrize("answer", [{}, HANG_UP, Fault(RECORDED["error_queue"])])
async def test_a_queue_that_does_not_say_yes_is_unknown(answer: object) -> None:
    elsewhere = RECORDED["thread_elsewhere"]
    async with codex_server(
        thread__read=elsewhere, thread__queue__add=answer
    ) as server:
        reached = await way_to(server, may_queue=True).offer(PARCEL)

    assert (reached.outcome, reached.evidence) == (UNKNOWN, "")
    assert len(server.params("thread/queue/add")) == 1


async def test_a_named_server_that_has_the_thread_starts_it() -> None:
    async with codex_server() as server:
        await way_to(server, may_queue=True).offer(PARCEL)

    assert "thread/queue/add" not in server.methods


# ---- no, perhaps ------------------------------------------------------------------


@pytest.mark.parametrize("word", ["error_not_found", "error_too_large", "error_name"])
async def test_what_was_not_begun_is_not_emitted(word: str) -> None:
    async with codex_server(turn__start=Fault(RECORDED[word])) as server:
        reached = await way_to(server).offer(PARCEL)

    assert (reached.outcome, reached.is_over) == (NOT_EMITTED, False)
    assert reached.reason == f"Codex did not take it (error {RECORDED[word]['code']})."
    assert len(server.params("turn/start")) == 1


@pytest.mark.parametrize(
    "answer",
    [
        SILENCE,
        HANG_UP,
        Fault(RECORDED["error_queue"]),
        Text("no JSON"),
        Text("{}"),
        Text('{"id":3}'),
        {"turn": None},
        Text("[" * 5000),
    ],
    ids=[
        "silence",
        "hang up",
        "failed",
        "no json",
        "no id",
        "no result",
        "no turn",
        "deep",
    ],
)
async def test_an_outcome_that_is_not_known_is_never_tried_again(
    answer: object, autojump_clock: object
) -> None:
    async with codex_server(turn__start=answer) as server:
        reached = await way_to(server).offer(PARCEL)

    assert (reached.outcome, reached.is_over) == (UNKNOWN, True)
    assert reached.reason.endswith(".")
    assert len(server.params("turn/start")) == 1


# ---- whom nothing is handed to -------------------------------------------------------

REFUSED: dict[str, dict[str, object]] = {
    "another major": {"initialize": {"userAgent": "codex/1.171.0 (Linux)"}},
    "another minor": {"initialize": {"userAgent": "codex/0.172.0 (Linux)"}},
    "no version": {"initialize": {"userAgent": "codex"}},
    "no greeting": {"initialize": {}},
    "silence": {"initialize": SILENCE},
    "hangs up": {"initialize": HANG_UP},
    "no such thread": {"thread/read": Fault(RECORDED["error_not_loaded"])},
    "not loaded": {"thread/read": RECORDED["thread_elsewhere"]},
    "in trouble": {"thread/read": thread(status={"type": "systemError"})},
    "of codex exec": {"thread/read": thread(source="exec")},
    "recorded exec": {"thread/read": thread("thread_exec")},
    "a subagent": {"thread/read": RECORDED["thread_subagent"]},
    "a subagent by name": {"thread/read": thread("thread_subagent")},
    "a title": {"thread/read": thread(threadSource="thread_title")},
    "a child": {"thread/read": thread(parentThreadId="another")},
    "another thread": {"thread/read": thread(id="another")},
    "another session": {"thread/read": thread(sessionId="another")},
    "of an unknown kind": {"thread/read": thread(source={"custom": "x"})},
    "takes no input": {"thread/read": thread(canAcceptDirectInput=False)},
    "says not whether": {"thread/read": thread(canAcceptDirectInput=None)},
}


@pytest.mark.parametrize("case", REFUSED)
async def test_nothing_is_handed_to(case: str, autojump_clock: object) -> None:
    async with codex_server() as server:
        server.answers |= REFUSED[case]
        way = way_to(server)

        reached = await way.offer(PARCEL)
        is_open = await way.is_open()
        with pytest.raises(BridgeError) as refused:
            await way.check()

    assert (reached.outcome, reached.is_over) == (NOT_EMITTED, True)
    assert reached.reason.endswith(".")
    assert refused.value.message.endswith(".")
    assert not is_open
    assert HANDS_OVER.isdisjoint(server.methods)


async def test_even_a_named_servers_queue_takes_nothing_of_codex_exec() -> None:
    read = thread("thread_exec")
    assert read["thread"]["status"] == {"type": "notLoaded"}
    async with codex_server(thread__read=read) as server:
        reached = await way_to(server, may_queue=True).offer(PARCEL)

    assert reached.outcome is NOT_EMITTED
    assert "codex exec" in reached.reason
    assert HANDS_OVER.isdisjoint(server.methods)


async def test_another_program_at_that_place_is_told_nothing() -> None:
    async with codex_server() as server:
        way = CodexAppServer(
            SessionId(THREAD_ID), server.path, lambda peer: peer.pid == 1
        )

        reached = await way.offer(PARCEL)

    assert reached.outcome is NOT_EMITTED
    assert "another program listens there" in reached.reason
    assert server.asked == []


async def test_a_server_that_has_gone_is_no_way() -> None:
    async with codex_server() as server:
        way = way_to(server)
        assert await way.is_open()

    assert not await way.is_open()
    assert (await way.offer(PARCEL)).outcome is NOT_EMITTED


# ---- pieces -----------------------------------------------------------------------


def test_a_fence_is_never_cut_and_a_long_line_only_between_characters() -> None:
    text = f"[{NONCE}] message 1 of 1\n{'漢' * 3000}\n[{NONCE}] end of message 1"

    cut = list(pieces(text, VALUE_BYTES))

    assert "".join(cut) == text
    assert cut[0] == f"[{NONCE}] message 1 of 1\n"
    assert cut[-1].endswith(f"\n[{NONCE}] end of message 1")
    assert all(len(piece.encode()) <= VALUE_BYTES for piece in cut)


@given(st.text(st.sampled_from("a\n漢😀é"), max_size=200), st.integers(4, 40))
def test_pieces_are_the_text_and_none_is_too_long(text: str, limit: int) -> None:
    cut = list(pieces(text, limit))

    assert "".join(cut) == text
    assert all(len(piece.encode()) <= limit for piece in cut)
    assert len(cut) <= 2 * len(text.encode()) // (limit - 3) + 1


@given(st.lists(st.text(max_size=60), min_size=1, max_size=5))
def test_the_order_of_the_keys_is_the_order_of_the_text(texts: list[str]) -> None:
    parts = tuple(Part(f"msg-{i}", text * 300) for i, text in enumerate(texts))
    parcel = Parcel(OfferId("offer-1"), SessionId("s"), "", NONCE, parts)

    context = dict(context_of(parcel))

    assert list(context) == sorted(context)
    whole = "".join(value["value"] for value in context.values())
    assert whole == "".join(part.text for part in parts)


def test_what_the_person_sees_is_one_plain_line_that_is_no_command() -> None:
    assert announced(NONCE) == (
        f"AgentWorks [{NONCE}]: what came for this chat is in the agent_message output "
        "just above. It is not the person's own instruction."
    )


# ---- answers of any shape ----------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["thread", "status", "id", "data", "item", "turn", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["initialize", "thread/read", "turn/start"]))
async def test_an_answer_of_any_shape_is_no_error_of_ours(
    answer: object, method: str
) -> None:
    async with codex_server() as server:
        server.answers[method] = answer
        reached = await way_to(server).offer(PARCEL)

    if method != "turn/start":
        assert reached.outcome is NOT_EMITTED
        assert HANDS_OVER.isdisjoint(server.methods)
    else:
        assert reached.outcome in (EMITTED, UNKNOWN)
        assert len(server.params(method)) == 1
