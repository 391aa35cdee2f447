"""One request and its answer: every way of failing is one of our errors."""

from __future__ import annotations

import gc
import socket
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing
from msgspec import Struct

from bridge.errors import BridgeError, Invalid, Refused, Unavailable, Unknown
from bridge.upstream import failures, transfer
from bridge.upstream.clients import CALLS_AT_ONCE, Server, embedded, open_server
from bridge.upstream.transfer import Question, ask
from tests.fakes.clock import FakeClock
from tests.fakes.scripted_server import (
    HANG,
    Answer,
    ScriptedServer,
    refused,
    said,
)
from tests.upstream.callers import Callers


class Counted(Struct):
    count: int


READ = Question("GET", "/count")
SEND = Question("POST", "/count", body={"text": "x"}, is_repeatable=False)


async def answer(
    calling: Callers, script: Answer | Exception, question: Question = READ
) -> Counted:
    caller = await calling(ScriptedServer(script))
    return await ask(caller.server, question, Counted, caller.clock, "cnry-token")


async def failure(
    calling: Callers, script: Answer | Exception, question: Question = READ
) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        await answer(calling, script, question)
    return caught.value


async def test_an_answer_is_decoded_and_what_is_new_in_it_ignored(
    calling: Callers,
) -> None:
    found = await answer(calling, said({"count": 3, "future": []}))

    assert found.count == 3


async def test_a_question_carries_body_query_and_token(calling: Callers) -> None:
    server = ScriptedServer(said({"count": 1}))
    caller = await calling(server)
    question = Question(
        "POST", "/count", query={"a": "b c", "n": 1}, body={"x": "\u00e9"}
    )
    await ask(caller.server, question, Counted, caller.clock, "cnry-token")
    [request] = server.requests

    assert request.method == "POST"
    assert str(request.url) == "http://bridge/count?a=b+c&n=1"
    assert request.headers["authorization"] == "Bearer cnry-token"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert server.asked() == {"x": "\u00e9"}


async def test_a_form_is_encoded_as_one_and_needs_no_token(calling: Callers) -> None:
    server = ScriptedServer(said({"count": 1}))
    caller = await calling(server)
    question = Question("POST", "/token", form={"grant": "a b"})
    await ask(caller.server, question, Counted, caller.clock)
    [request] = server.requests

    assert request.content == b"grant=a+b"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert "authorization" not in request.headers


# ---- was it done? ------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.PoolTimeout("busy"),
        httpx.ProxyError("no"),
        FileNotFoundError("no socket"),
        OSError("AF_UNIX path too long"),
    ],
)
@pytest.mark.parametrize("question", [READ, SEND])
async def test_what_was_certainly_not_sent_may_be_tried_later(
    calling: Callers, error: Exception, question: Question
) -> None:
    found = await failure(calling, error, question)

    assert isinstance(found, Unavailable)
    assert found.code == "server_unreachable"
    assert type(error).__name__ not in found.message
    assert "a command of your own has to be run again" in found.hint


_LOST: list[Answer | Exception] = [
    httpx.ReadError("reset"),
    httpx.WriteError("reset"),
    httpx.RemoteProtocolError("closed"),
    Answer(200, {}, [b'{"cou', httpx.ReadError("reset")]),
    Answer(500, {}, [b"oops"]),
    Answer(502, {}, [b"<html>"]),
    Answer(504),
]


@pytest.mark.parametrize("script", _LOST)
async def test_a_lost_answer_of_a_repeatable_question_is_unavailable(
    calling: Callers, script: Answer | Exception
) -> None:
    found = await failure(calling, script)

    assert isinstance(found, Unavailable)
    assert found.code == "reply_lost"
    assert "a command of your own has to be run again" in found.hint


@pytest.mark.parametrize(
    "script",
    [
        *_LOST,
        said({"no": "count"}),
        Answer(200, {}, [b"<html>"]),
        Answer(200, {"content-encoding": "gzip"}, [b"\x1f\x8b"]),
    ],
)
async def test_a_lost_or_senseless_answer_to_a_send_is_unknown(
    calling: Callers, script: Answer | Exception
) -> None:
    found = await failure(calling, script, SEND)

    assert isinstance(found, Unknown)
    assert "same submission id" in found.hint


@pytest.mark.parametrize(("question", "kind"), [(READ, Unavailable), (SEND, Unknown)])
async def test_a_server_that_says_nothing_is_given_10_seconds(
    calling: Callers,
    autojump_clock: trio.testing.MockClock,
    question: Question,
    kind: type[BridgeError],
) -> None:
    found = await failure(calling, Answer(200, {}, [b"{", HANG]), question)

    assert type(found) is kind
    assert trio.current_time() == transfer.CALL_DEADLINE_S


async def test_a_question_may_have_a_longer_deadline(
    calling: Callers, autojump_clock: trio.testing.MockClock
) -> None:
    question = Question("GET", "/wait", deadline_s=35.0)
    slow = Answer(200, {}, [30.0, b'{"count":1}'])

    assert (await answer(calling, slow, question)).count == 1


# ---- refusals ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 422])
@pytest.mark.parametrize("question", [READ, SEND])
async def test_a_no_keeps_its_status_code_text_and_facts(
    calling: Callers, status: int, question: Question
) -> None:
    script = refused(status, "name_held", holder={"name": "bob"})
    found = await failure(calling, script, question)

    assert isinstance(found, Refused)
    assert (found.status, found.code) == (status, "name_held")
    assert found.message == "no: name_held."
    assert found.details == {"holder": {"name": "bob"}}


@pytest.mark.parametrize("status", [408, 425, 429, 503])
@pytest.mark.parametrize("question", [READ, SEND])
async def test_not_now_is_unavailable_since_nothing_was_done(
    calling: Callers, status: int, question: Question
) -> None:
    found = await failure(
        calling, refused(status, "slow", {"Retry-After": "12"}), question
    )

    assert isinstance(found, Unavailable)
    assert found.retry_after_s == 12


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b'{"error":"invalid_grant"}', "invalid_grant"),
        (b'{"error":{}}', "http_400"),
        (b'{"error":{"code":7,"message":[]}}', "http_400"),
        (b"<html>", "http_400"),
        (b"", "http_400"),
        (b"\xff", "http_400"),
        (b'{"error":' + b"[" * 100_000, "http_400"),
    ],
)
async def test_an_error_body_of_any_kind_gives_a_code_and_a_sentence(
    calling: Callers, content: bytes, code: str
) -> None:
    found = await failure(calling, Answer(400, {}, [content]))

    assert found.code == code
    assert "400" in found.message


async def test_a_servers_text_cannot_drive_a_terminal(calling: Callers) -> None:
    error = {"code": "x\n", "message": "a\x1b[2J\r\nb\u202e" + "y" * 9000}
    found = await failure(calling, said({"error": error}, 409))

    assert found.code == "x"
    assert found.message.isprintable()
    assert len(found.message) <= failures.MESSAGE_LIMIT


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("question", [READ, SEND])
async def test_a_redirect_is_never_followed(
    calling: Callers, status: int, question: Question
) -> None:
    server = ScriptedServer(Answer(status, {"Location": "http://elsewhere/"}))
    caller = await calling(server)

    with pytest.raises(Unavailable, match="would get the token"):
        await ask(caller.server, question, Counted, caller.clock, "cnry-token")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [201, 204, 206])
async def test_another_success_is_nonsense(calling: Callers, status: int) -> None:
    assert isinstance(await failure(calling, Answer(status)), Invalid)


# ---- sizes ---------------------------------------------------------------------


async def test_a_body_over_16_mib_is_refused_without_being_kept(
    calling: Callers,
) -> None:
    read = []

    def endless() -> object:
        for _ in range(100):
            read.append(1)
            yield b"x" * 1024 * 1024
        yield HANG

    found = await failure(calling, Answer(200, {}, endless()))  # type: ignore[arg-type]

    assert isinstance(found, Invalid)
    assert "16777216" in found.message


async def test_a_body_of_exactly_16_mib_is_taken(calling: Callers) -> None:
    start = b'{"count":1}'
    blank = b" " * (transfer.BODY_LIMIT_BYTES - len(start))

    assert (await answer(calling, Answer(200, {}, [start, blank]))).count == 1


async def test_a_deeply_nested_answer_is_nonsense(calling: Callers) -> None:
    script = Answer(200, {}, [b'{"count":1,"future":' + b"[" * 100_000])

    assert isinstance(await failure(calling, script), Invalid)


async def test_a_compressed_body_is_refused(calling: Callers) -> None:
    script = Answer(200, {"content-encoding": "gzip"}, [b"\x1f\x8b"])

    assert isinstance(await failure(calling, script), Invalid)


async def test_a_cancelled_call_leaves_no_generator_behind(tmp_path: Path) -> None:
    """What a garbage collection finds then would be a warning, which is an error."""
    path = tmp_path / "server.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        question = Question("POST", "/x", body="x" * 4_000_000)
        async with (
            open_server(embedded(path)) as server,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(ask, server, question, Answer, FakeClock())
            # Its body is larger than a socket takes from a peer that reads nothing.
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        gc.collect()


class _CancelAt(trio.abc.Instrument):
    """Cancels the scope when this task has run so many steps."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self._task = trio.lowlevel.current_task()
        self._scope = scope
        self._left = step

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._left -= task is self._task
        if self._left == 0:
            self._scope.cancel()


async def cancelled_at(server: Server, step: int) -> bool:
    """Whether a call was, with this many steps behind it."""
    with trio.CancelScope() as scope:
        instrument = _CancelAt(scope, step)
        trio.lowlevel.add_instrument(instrument)
        try:
            await ask(server, READ, Counted, FakeClock())
        finally:
            trio.lowlevel.remove_instrument(instrument)
    return scope.cancelled_caught


class _Meeting:
    """A server of a socket that answers each call, or only all of them together."""

    def __init__(self) -> None:
        self.wanted = 1
        self._here = 0
        self._all_here = trio.Event()

    async def serve(self, stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            async for _ in stream:
                self._here += 1
                if self.wanted == 1 or self._here == self.wanted:
                    self._all_here.set()
                await self._all_here.wait()
                await stream.send_all(
                    b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"count":1}'
                )

    def call(self, wanted: int) -> None:
        """From now on nobody is answered before so many are here."""
        self.wanted, self._here, self._all_here = wanted, 0, trio.Event()


async def test_a_call_that_is_cancelled_at_any_moment_leaves_its_place_to_others(
    tmp_path: Path,
) -> None:
    meeting = _Meeting()
    socket_ = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    await socket_.bind(str(tmp_path / "s"))
    socket_.listen(CALLS_AT_ONCE)
    async with (
        trio.open_nursery() as serving,
        open_server(embedded(tmp_path / "s")) as server,
    ):
        listener = trio.SocketListener(socket_)
        serving.start_soon(trio.serve_listeners, meeting.serve, [listener])
        # Often enough that one lost place each time would leave none.
        for _ in range(CALLS_AT_ONCE):
            step = 1
            while await cancelled_at(server, step):
                step += 1

        meeting.call(CALLS_AT_ONCE)
        async with trio.open_nursery() as calling:
            for _ in range(CALLS_AT_ONCE):
                calling.start_soon(ask, server, READ, Counted, FakeClock())
        serving.cancel_scope.cancel()
