"""Answers: read tolerantly, refused as they were meant, junk as Invalid."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import (
    BridgeError,
    Invalid,
    Refused,
    StorageBroken,
    StorageFull,
    Unavailable,
    Unknown,
)
from bridge.local.replies import (
    AgentRow,
    AgentsReply,
    HelloReply,
    decode_answer,
    decode_reply,
    encode_error,
    encode_ok,
)

ROW = AgentRow("bob", "claude", "0b3c", "attached", "hook", pending=3, why="idle")


def test_an_answer_survives_the_wire() -> None:
    answer = AgentsReply(agents=(ROW,))

    assert decode_answer(decode_reply(encode_ok(answer)), AgentsReply) == answer


def test_a_later_daemon_may_say_more() -> None:
    ok = b'{"version":"9","pid":1,"state":"running","server":"s","uptime_s":1,"new":[]}'

    hello = decode_answer(decode_reply(b'{"ok":' + ok + b',"more":1}'), HelloReply)

    assert hello.version == "9"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Unavailable("busy", "Busy.", "Wait."), Unavailable),
        (StorageFull("storage_full", "Full."), Unavailable),
        (Refused("name_held", "Held.", "Detach it.", status=409), Refused),
        (Refused("forbidden", "No.", status=403), Refused),
        (Refused("unsafe", "No.", exit_code=78), Refused),
        (Invalid("bad_request", "What?"), Refused),
        (Unknown("unsure", "It may have happened."), Refused),
        (StorageBroken("broken", "Broken.", exit_code=78), Refused),
    ],
)
def test_an_error_keeps_its_words_and_its_exit_code(
    error: BridgeError, kind: type[BridgeError]
) -> None:
    with pytest.raises(kind) as caught:
        decode_reply(encode_error(error))

    raised = caught.value
    assert (raised.code, raised.sentence()) == (error.code, error.sentence())
    assert raised.exit_code == error.exit_code


def test_an_error_without_an_exit_code_is_a_failure() -> None:
    with pytest.raises(Refused) as caught:
        decode_reply(b'{"error":{"code":"c","message":"m"}}')

    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"ok"', b'{"error":"no"}', b"[" * 5000]
)
def test_junk_is_invalid(body: bytes) -> None:
    with pytest.raises(Invalid):
        decode_reply(body)


@pytest.mark.parametrize("ok", [b"[]", b'{"agents":5}', b"null"])
def test_another_answer_than_asked_for_is_invalid(ok: bytes) -> None:
    with pytest.raises(Invalid):
        decode_answer(ok, AgentsReply)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_bridge_error(body: bytes) -> None:
    with suppress(BridgeError):
        decode_reply(body)


@given(st.recursive(st.none() | st.integers(-(2**53), 2**53) | st.text(), st.lists))
def test_any_json_survives_the_wire(answer: object) -> None:
    try:
        reply = encode_ok(answer)
    except UnicodeEncodeError:
        return  # a lone surrogate: refused before it is sent
    if answer is None:
        return

    assert msgspec.json.decode(decode_reply(reply)) == answer
