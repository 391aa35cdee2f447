"""What a server says reaches agents and people only as plain, visible text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.driver import verbs
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError
from tests.core.examples import ANY_TEXT
from tests.core.test_visible import HOST_TAG, hidden_characters
from tests.driver.virtual import START, VirtualClock, attachment, virtual_bridge
from tests.fakes.routed_server import RoutedServer
from tests.fakes.scripted_server import Answer, said

# What JSON can carry: a lone surrogate is refused before any of this.
TEXT = ANY_TEXT.map(lambda text: text.encode("utf-8", "replace").decode())


def page(text: str) -> dict[str, object]:
    row = dict.fromkeys(
        ("inbox_id", "conversation_id", "message_id", "sender", "message", "sent_at"),
        text,
    )
    row |= {"sender_provider": text, "reply_address": text, "delivery": text}
    return {"messages": [{**row, "sequence": START + 1}], "next_cursor": START + 1}


def directory(text: str) -> dict[str, object]:
    row = {"name": text, "provider": text, "purpose": text, "since": text}
    return {"agents": [{**row, "connected": True}]}


def sent(text: str) -> dict[str, object]:
    fields = ("message_id", "inbox_id", "conversation_id", "delivery", "sent_at")
    recipient = {"name": text, "state": text, "since": text}
    return {**dict.fromkeys(fields, text), "sequence": 1, "recipient": recipient}


def purpose(text: str) -> dict[str, object]:
    return {"purpose": text}


ANSWERS = {"read": page, "peers": directory, "status": sent, "set_purpose": purpose}
ASKED: dict[str, dict[str, Any]] = {
    "read": {"inbox_id": "", "after": 0, "wait_s": 0, "limit": 5, "start": 0},
    "peers": {},
    "status": {"id_": "sub-1"},
    "set_purpose": {"purpose": "mine"},
}


def texts_of(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for each in value.values() for text in texts_of(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in texts_of(each)]
    return []


def told(verb: str, answer: Answer) -> list[str]:
    """All that an agent is told when the server answers its verb with this."""

    async def ask() -> list[str]:
        server = RoutedServer()
        for word in ("read", "agents", "sub-1", "purpose", "send"):
            server.scripts[word] = lambda _: answer
        async with virtual_bridge(server, VirtualClock()) as bridge:
            queue: AttachmentQueue = bridge.new_queue(attachment())
            bridge.roster.add(queue)
            queue.stream_trouble = "down"
            try:
                done = await verbs.perform(bridge, queue, verb, ASKED[verb])
            except BridgeError as error:
                return [error.sentence(), error.code]
            return texts_of(done)

    return trio.run(ask)


@pytest.mark.parametrize("verb", ASKED)
@given(TEXT)
@settings(deadline=None)
def test_no_answer_of_a_server_hides_or_speaks_as_a_host_to_an_agent(
    verb: str, text: str
) -> None:
    for shown in told(verb, said(ANSWERS[verb](text))):
        assert hidden_characters(shown) == set()
        assert HOST_TAG.search(shown) is None


@pytest.mark.parametrize("verb", ASKED)
@given(TEXT, TEXT, st.sampled_from([400, 403, 404, 409, 410, 422, 429, 503]))
@settings(deadline=None)
def test_no_refusal_of_a_server_hides_or_speaks_as_a_host_to_an_agent(
    verb: str, code: str, text: str, status: int
) -> None:
    error = {"code": code, "message": text, "nearest": [text]}
    sentence, said_code = told(verb, said({"error": error}, status))

    assert len(sentence.splitlines()) == 1
    assert hidden_characters(sentence) == set()
    assert HOST_TAG.search(sentence) is None
    assert said_code == code.strip() or said_code == f"http_{status}"
    assert said_code.isascii()
    assert said_code.isprintable()
