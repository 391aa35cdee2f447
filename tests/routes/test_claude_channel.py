"""The channel: one notification for each message, trusted once it was answered."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bridge.core.ids import MessageId, OfferId, SessionId
from bridge.core.records import OfferOutcome
from bridge.core.routing import Parcel, Part
from bridge.errors import BridgeError, Unavailable, Unknown
from bridge.routes.claude_channel import METHOD, About, Channel, ClaudeChannel

ONE = MessageId("msg-1")


class ScriptedPort:
    """Keeps what is pushed; `error` is what becomes of the next."""

    def __init__(self, error: BridgeError | None = None) -> None:
        self.is_open = True
        self.error = error
        self.pushed: list[tuple[str, Mapping[str, object]]] = []

    async def notify(self, method: str, params: Mapping[str, object]) -> None:
        if self.error is not None:
            raise self.error
        self.pushed.append((method, params))


class Chat:
    """One session with a channel, as the driver would know it."""

    def __init__(self, error: BridgeError | None = None) -> None:
        self.port = ScriptedPort(error)
        self.is_current = True
        self.rows = {ONE: About("alice", "inbox-1")}
        self.channel = Channel(self.port)

    def way(self) -> ClaudeChannel:
        return ClaudeChannel(
            "claude+channel://1", self.channel, lambda: self.is_current, self.rows.get
        )

    def acknowledge(self) -> None:
        self.rows[ONE] = About("alice", "inbox-1", is_answered=True)


def parcel(*keys: str) -> Parcel:
    parts = tuple(Part(key, f"text of {key}") for key in ("head", *keys, "foot"))
    text = "\n\n".join(part.text for part in parts)
    return Parcel(OfferId("offer-1"), SessionId("session-1"), text, "nonce", parts)


async def test_a_message_is_pushed_with_the_ids_to_answer_it_by() -> None:
    chat = Chat()
    reached = await chat.way().offer(parcel(ONE))

    meta = {"message_id": "msg-1", "sender": "alice", "inbox_id": "inbox-1"}
    assert chat.port.pushed == [(METHOD, {"content": parcel(ONE).text, "meta": meta})]
    assert (reached.outcome, reached.evidence) == (OfferOutcome.EMITTED, "")


async def test_what_we_say_ourselves_goes_without_ids() -> None:
    chat = Chat()
    await chat.way().offer(parcel())

    ((_, params),) = chat.port.pushed
    assert params["meta"] == {}
    assert await chat.way().is_open()


async def test_a_name_cannot_break_out_of_the_hosts_tag() -> None:
    chat = Chat()
    chat.rows[ONE] = About('x" evil="<1>', "inbox-1")
    await chat.way().offer(parcel(ONE))

    ((_, params),) = chat.port.pushed
    assert isinstance(params["meta"], dict)
    assert "<" not in params["meta"]["sender"]


async def test_a_second_message_waits_until_the_first_was_answered() -> None:
    """Nobody says whether the vendor has switched channels on."""
    chat = Chat()
    assert await chat.way().is_open()
    await chat.way().offer(parcel(ONE))
    assert not await chat.way().is_open()

    chat.acknowledge()
    assert await chat.way().is_open()
    chat.rows.clear()
    await chat.way().offer(parcel("msg-2"))
    assert await chat.way().is_open()


async def test_another_chat_of_the_program_or_a_child_that_is_gone_closes_it() -> None:
    chat = Chat()
    chat.is_current = False
    assert not await chat.way().is_open()

    chat.is_current, chat.port.is_open = True, False
    assert not await chat.way().is_open()


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Unavailable("busy", "It takes nothing."), OfferOutcome.NOT_EMITTED),
        (Unknown("broken", "It broke."), OfferOutcome.UNKNOWN),
    ],
)
async def test_a_push_that_fails_says_what_is_known(
    error: BridgeError, outcome: OfferOutcome
) -> None:
    reached = await Chat(error).way().offer(parcel(ONE))

    assert reached.outcome is outcome
    assert reached.reason == error.message
    assert reached.is_over
