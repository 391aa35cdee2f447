"""What a command may ask: strict, small, and one meaning for each verb."""

from __future__ import annotations

import typing
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import Invalid
from bridge.local import requests
from bridge.local.requests import AnyRequest, decode_request, encode_request

EXAMPLES: list[AnyRequest] = [
    requests.Hello(),
    requests.Status(),
    requests.Stop(),
    requests.Prepare(provider="codex", native_pid=7, folder="/home/me/project"),
    requests.Attach(name="bob", provider="codex", session_id="s", native_pid=7),
    requests.Detach(name="bob"),
    requests.Agents(),
    requests.WakeTest(name="bob"),
    requests.WakeProgress(known=2),
    requests.MessagesRegister(agent="bob", allow_connections=("oauth-1",)),
    requests.MessagesList(),
    requests.MessagesUnregister(agent="bob"),
    requests.MessagesSend(message="hello", target="agent:bob"),
    requests.MessagesRead(agent="bob", after=500_000_001, wait_s=25),
    requests.MessagesState(inbox_id="inbox-1"),
    requests.SessionSend(provider="claude", target="agent:bob", message="hello"),
    requests.SessionReply(
        provider="claude", message_id="msg-1", message="yes", submission_id="s-1"
    ),
    requests.SessionRead(provider="claude", inbox_id="inbox-1"),
    requests.SessionAck(provider="claude", message_id="msg-1", delivery="admitted"),
    requests.SessionPeers(provider="claude"),
    requests.SessionPurpose(provider="claude", purpose="Review"),
    requests.SessionMessageStatus(provider="claude", id="msg-1"),
    requests.SessionWatch(session_id="s-1", after=7),
]


def test_there_is_an_example_of_every_verb() -> None:
    assert {type(example) for example in EXAMPLES} == set(typing.get_args(AnyRequest))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: type(each).__name__)
def test_a_request_survives_the_wire(example: AnyRequest) -> None:
    assert decode_request(encode_request(example)) == example


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: type(each).__name__)
def test_an_unknown_field_is_refused(example: AnyRequest) -> None:
    fields = msgspec.json.decode(encode_request(example)) | {"later": 1}

    with pytest.raises(Invalid, match="unknown field"):
        decode_request(msgspec.json.encode(fields))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"[]",
        b'{"verb":"dance"}',
        b'{"verb":"detach","name":5}',
        b'{"verb":"detach","name":null}',
        b'{"verb":"attach","native_pid":-1}',
        b'{"verb":"attach","native_pid":9223372036854775808}',
        b'{"verb":"attach","name":"' + b"x" * 1025 + b'"}',
        b'{"verb":"session_ack","provider":"p","message_id":"m","delivery":"stored"}',
        b'{"verb":"messages_send","message":"m"}',
        b'{"verb":"messages_send","message":"m","target":"t","inbox_id":"i"}',
        b'{"verb":"messages_read"}',
        b'{"verb":"messages_read","agent":"a","wait_s":26}',
        b'{"verb":"messages_read","agent":"a","limit":101}',
        b'{"verb":"messages_read","agent":"a","after":-1}',
        b'{"verb":"session_reply","provider":"p","message":"m","submission_id":"s"}',
        b'{"verb":"session_purpose","provider":"p","purpose":"\\ud800"}',
        b'{"verb":"detach","name":"\xff"}',
        b'{"verb":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_nonsense_is_invalid(body: bytes) -> None:
    with pytest.raises(Invalid):
        decode_request(body)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_request_or_invalid(body: bytes) -> None:
    with suppress(Invalid):
        decode_request(body)


def test_a_refusal_never_quotes_the_message() -> None:
    body = b'{"verb":"messages_send","message":"secret words","later":1}'

    with pytest.raises(Invalid) as caught:
        decode_request(body)

    assert "secret" not in caught.value.sentence()
