"""agy's own service: one call for each offer, and the token in no text of ours.

Against a double that is built from published facts; see tests/fakes/agy_service.
"""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import OfferId, SessionId
from bridge.core.records import OfferOutcome
from bridge.core.routing import Parcel
from bridge.routes.agy_agentapi import SEND_S, Access, AgyAgentapi, access_of
from tests.fakes.agy_service import SHAPE, TOKEN, agy_service, status
from tests.fakes.tcp_server import End

CONVERSATION = SessionId("fa76bcf6-e79d-42c2-be38-aa95ded5247c")
PARCEL = Parcel(OfferId("offer-1"), CONVERSATION, "from alice\n語 “x”", "nonce", ())


def way(access: Access | None) -> AgyAgentapi:
    return AgyAgentapi(CONVERSATION, lambda: access)


async def test_an_offer_is_the_one_call_that_is_known() -> None:
    async with agy_service() as service:
        reached = await way(Access(service.port, TOKEN)).offer(PARCEL)

        assert (reached.outcome, reached.reason) == (OfferOutcome.EMITTED, "")
        assert service.texts == [PARCEL.text]
        (body,) = service.bodies
        assert body["cascadeId"] == CONVERSATION
        assert body["messageOrigin"] == SHAPE["body"]["messageOrigin"]
        assert set(body) <= set(SHAPE["body"])
        assert service.server.connections == 1


@pytest.mark.parametrize("code", [401, 403, 404])
async def test_a_service_that_takes_nothing_has_taken_nothing(code: int) -> None:
    async with agy_service(status(code)) as service:
        reached = await way(Access(service.port, TOKEN)).offer(PARCEL)

    assert (reached.outcome, reached.is_over) == (OfferOutcome.NOT_EMITTED, True)


async def test_an_old_token_is_refused_and_not_shown() -> None:
    async with agy_service() as service:
        access = Access(service.port, "the-old-one")
        reached = await way(access).offer(PARCEL)

        assert reached.outcome is OfferOutcome.NOT_EMITTED
        assert service.texts == []
        assert "the-old-one" not in f"{reached!r}{access!r}{access}"
        assert "the-old-one" not in way(access).address


@pytest.mark.parametrize(
    "answer",
    [
        status(500),
        status(400),
        status(302, "location: http://127.0.0.1:1/\r\n"),
        b"HTTP/1.1 200",
        b"nonsense\r\n\r\n",
        End.RESET,
    ],
)
async def test_an_unclear_answer_is_unknown_and_never_asked_again(
    answer: bytes | End,
) -> None:
    async with agy_service(answer) as service:
        reached = await way(Access(service.port, TOKEN)).offer(PARCEL)

        assert reached.outcome is OfferOutcome.UNKNOWN
        assert reached.reason
        assert service.server.connections == 1


async def test_a_service_that_is_gone_was_sent_nothing() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    reached = await way(Access(port, TOKEN)).offer(PARCEL)

    assert (reached.outcome, reached.is_over) == (OfferOutcome.NOT_EMITTED, True)


async def test_a_service_that_is_silent_is_given_up_in_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        port = listener.socket.getsockname()[1]
        start = trio.current_time()
        reached = await way(Access(port, TOKEN)).offer(PARCEL)

    assert reached.outcome in (OfferOutcome.UNKNOWN, OfferOutcome.NOT_EMITTED)
    assert trio.current_time() - start <= SEND_S + 1


async def test_without_an_access_the_way_is_closed_and_over() -> None:
    reached = await way(None).offer(PARCEL)

    assert not await way(None).is_open()
    assert (reached.outcome, reached.is_over) == (OfferOutcome.NOT_EMITTED, True)
    assert await way(Access(1, TOKEN)).is_open()


async def test_no_proxy_of_the_person_sees_it() -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("http_proxy", "http://127.0.0.1:1")
        environment.setenv("ALL_PROXY", "http://127.0.0.1:1")
        async with agy_service() as service:
            reached = await way(Access(service.port, TOKEN)).offer(PARCEL)

    assert reached.outcome is OfferOutcome.EMITTED


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_an_access_is_a_port_of_this_computer(host: str) -> None:
    assert access_of(f"{host}:41234", "t") == Access(41234, "t")


@pytest.mark.parametrize(
    ("address", "token"),
    [
        ("", "t"),
        ("example.com:80", "t"),
        ("localhost.example.com:80", "t"),
        ("127.0.0.1:0", "t"),
        ("127.0.0.1:65536", "t"),
        ("127.0.0.1:80/path", "t"),
        ("user@127.0.0.1:80", "t"),
        ("http://127.0.0.1:80", "t"),
        ("127.0.0.1:80\n", "t"),
        ("127.0.0.1:80", ""),
        ("127.0.0.1:80", "a b"),
        ("127.0.0.1:80", "a\r\nx: y"),
        ("127.0.0.1:80", "x" * 513),
    ],
)
def test_anything_else_is_no_access(address: str, token: str) -> None:
    assert access_of(address, token) is None


@given(st.text(max_size=40), st.text(max_size=40))
def test_whatever_the_variables_hold_only_loopback_comes_out(
    address: str, token: str
) -> None:
    access = access_of(address, token)

    assert access is None or 0 < access.port < 65_536
