"""Real sockets that break: each break is told as what it is, and nothing leaks."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
import trustme

from bridge.core.ids import SubmissionId
from bridge.errors import BridgeError, Unavailable
from bridge.upstream import api
from bridge.upstream.api import Caller
from bridge.upstream.clients import open_server, remote
from bridge.upstream.credentials import FixedToken
from bridge.upstream.sender import Sender
from tests.fakes.clock import FakeClock
from tests.fakes.memory_outbox import MemoryOutbox
from tests.fakes.tcp_server import (
    EVENTS,
    End,
    Script,
    chunk,
    document,
    tcp_server,
)
from tests.journeys.rig.waiting import until_some
from tests.upstream.following import follow, frame
from tests.upstream.sending import ACCEPTED, ATTACHMENT_ID, submission

TOKEN = "cnry-network-token"
NET_S = 20.0


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@asynccontextmanager
async def calling(url: str, clock: FakeClock | None = None) -> AsyncIterator[Caller]:
    """Who calls this address, with a token that must go nowhere else."""
    with trio.fail_after(NET_S):
        async with open_server(remote(url)) as server:
            yield Caller(server, FixedToken(TOKEN), clock or FakeClock())


def serving(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture
def trusted(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person's own authority, named as OpenSSL's programs expect it."""
    authority.cert_pem.write_to_path(tmp_path / "own.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))


# ---- breaks (row 53) -----------------------------------------------------------------

WHOLE = EVENTS + chunk(frame(1))
HALF = chunk(frame(2))[:40]
BREAKS: dict[str, tuple[Script, list[int]]] = {
    "reset before the answer": ([End.RESET], []),
    "cut before the answer": ([End.CUT], []),
    "cut in the head": ([EVENTS[:25], End.CUT], []),
    "reset after an event": ([WHOLE, End.RESET], [1]),
    "cut in a chunk": ([WHOLE, HALF, End.CUT], [1]),
    "reset in a chunk": ([WHOLE, HALF, End.RESET], [1]),
    "cut between chunks": ([WHOLE, End.CUT], [1]),
    "an orderly end": ([WHOLE, b"0\r\n\r\n"], [1]),
    "no HTTP at all": ([b"SSH-2.0-OpenSSH_9.2\r\n"], []),
    "a chunk of a wrong size": ([WHOLE, b"zz\r\nnonsense\r\n"], [1]),
}


@pytest.mark.parametrize("how", BREAKS)
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.usefixtures("trusted")
async def test_a_broken_stream_gives_its_whole_events_and_is_unavailable(
    authority: trustme.CA, how: str, is_tls: bool
) -> None:
    script, whole = BREAKS[how]
    tls = serving(authority) if is_tls else None
    async with tcp_server(lambda _: script, tls) as server:
        scheme = "https" if is_tls else "http"
        async with calling(f"{scheme}://localhost:{server.port}") as caller:
            followed = await follow(caller)

    assert isinstance(followed.error, Unavailable), followed.error
    # A reset may overtake what was sent before it.
    assert followed.numbers() in ([whole, []] if "reset" in how else [whole])


async def test_nobody_at_the_port_or_by_the_name_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        urls = [f"http://127.0.0.1:{port}", "https://no-such-host.invalid"]
        for url in urls:
            async with calling(url) as caller:
                followed = await follow(caller)
                with pytest.raises(Unavailable) as refused:
                    await api.hello(caller)
            assert isinstance(followed.error, Unavailable)
            assert followed.error.code == refused.value.code == "server_unreachable"


# ---- an answer that is lost (row 63) -------------------------------------------------


async def test_a_submission_whose_answer_was_reset_goes_out_again_with_its_id() -> None:
    """The server took it the first time: it has one message, and so has the outbox."""
    stored: dict[str, bytes] = {}
    clock = FakeClock()
    outbox = MemoryOutbox(clock)
    outbox.add(submission(1), submission(2))

    def take(request: bytes) -> Script:
        said = msgspec.json.decode(request.partition(b"\r\n\r\n")[2])
        is_new = said["submission_id"] not in stored
        stored[said["submission_id"]] = request
        if is_new:
            return [End.RESET]
        return [document(msgspec.json.encode(ACCEPTED))]

    async def both_accepted() -> bool:
        return outbox.states() == ["accepted", "accepted"]

    async with (
        tcp_server(take) as server,
        calling(f"http://127.0.0.1:{server.port}", clock) as caller,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(Sender(caller, ATTACHMENT_ID, outbox).run)
        await until_some(both_accepted, "two accepted submissions")
        nursery.cancel_scope.cancel()

    assert sorted(stored) == ["sub-1", "sub-2"]
    assert len(server.requests) == 4
    assert outbox.told == [
        "sub-1 ReplyLost",
        "sub-1 Accepted",
        "sub-2 ReplyLost",
        "sub-2 Accepted",
    ]
    assert outbox.rows[SubmissionId("sub-1")].message_id == "msg-9"


# ---- where a token goes (row 68) -----------------------------------------------------


async def failure(caller: Caller) -> BridgeError | None:
    try:
        await api.hello(caller)
    except BridgeError as error:
        return error
    return None


HELLO = document(b'{"version":"1"}')


@pytest.mark.usefixtures("trusted")
async def test_an_authority_of_the_persons_own_is_trusted_by_its_variable(
    authority: trustme.CA,
) -> None:
    async with (
        tcp_server(lambda _: [HELLO], serving(authority)) as server,
        calling(f"https://localhost:{server.port}") as caller,
    ):
        assert await failure(caller) is None
        assert TOKEN.encode() in server.requests[0]


async def test_a_server_that_cannot_prove_its_name_is_told_nothing(
    authority: trustme.CA,
) -> None:
    async with (
        tcp_server(lambda _: [HELLO], serving(authority)) as server,
        calling(f"https://localhost:{server.port}") as caller,
    ):
        assert isinstance(await failure(caller), Unavailable)
        assert b"".join(server.requests) == b""


async def test_a_proxy_gets_a_tunnel_to_open_and_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: bytes) -> Script:
        return [b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"]

    async with tcp_server(refuse) as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with calling("https://agentworks.invalid") as caller:
            assert isinstance(await failure(caller), Unavailable)
            assert isinstance((await follow(caller)).error, Unavailable)

    assert len(proxy.requests) == 2
    for request in proxy.requests:
        assert request.startswith(b"CONNECT agentworks.invalid:443 ")
        assert TOKEN.encode() not in request
        assert b"authorization:" not in request.lower().replace(b"proxy-auth", b"")


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
async def test_what_is_on_this_computer_is_reached_past_any_proxy(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with (
        tcp_server(lambda _: [End.CUT]) as proxy,
        tcp_server(lambda _: [HELLO]) as server,
    ):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with calling(f"http://127.0.0.1:{server.port}") as caller:
            assert await failure(caller) is None
        assert proxy.connections == 0


async def test_a_netrc_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("default login me password cnry-netrc\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    async with (
        tcp_server(lambda _: [HELLO]) as server,
        calling(f"http://127.0.0.1:{server.port}") as caller,
    ):
        assert await failure(caller) is None

    (request,) = server.requests
    lines = [x for x in request.split(b"\r\n") if x.lower().startswith(b"authoriz")]
    assert lines == [b"Authorization: Bearer " + TOKEN.encode()]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_another_origin_never_hears_the_token(status: int) -> None:
    async with tcp_server(lambda _: [HELLO]) as other:
        place = b"location: http://127.0.0.1:%d/\r\n" % other.port
        moved = b"HTTP/1.1 %d Moved\r\n%bcontent-length: 0\r\n\r\n" % (status, place)
        async with (
            tcp_server(lambda _: [moved]) as server,
            calling(f"http://127.0.0.1:{server.port}") as caller,
        ):
            assert isinstance(await failure(caller), Unavailable)
            assert isinstance((await follow(caller)).error, Unavailable)
        assert other.connections == 0
