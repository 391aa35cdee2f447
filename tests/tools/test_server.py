"""MCP sessions in the daemon, over memory streams and once over everything real."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.errors import Refused, Unavailable, Unknown
from bridge.tools.catalog import TOOLS, listing
from bridge.tools.server import (
    CALLS_LIMIT,
    PUSH_S,
    Output,
    ToolCall,
    ToolOutcome,
    serve_mcp,
)
from tests.fakes.scripted_daemon import Connection, scripted_daemon
from tests.hooks.conftest import HOOKS, with_first_line
from tests.hooks.host import LIST_CHANGED, host_of

Call = Callable[[ToolCall], Awaitable[ToolOutcome]]


def message(number: object, method: str, params: object = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}


def initialize(version: str = "2025-11-25") -> dict[str, Any]:
    client = {"name": "host", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return message(0, "initialize", params)


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def peers(number: object, meta: object = None) -> dict[str, Any]:
    params = {"name": "agent_message_peers", "arguments": {}, "_meta": meta or {}}
    return message(number, "tools/call", params)


def as_lines(*messages: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


async def echo(call: ToolCall) -> ToolOutcome:
    return ToolOutcome(f"{call.verb} {json.dumps(call.arguments)}")


class Child:
    """The far end of one session."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.buffer = b""
        self.heard: list[dict[str, Any]] = []

    async def say(self, *messages: object) -> None:
        await self.stream.send_all(as_lines(*messages))

    async def hear(self) -> dict[str, Any]:
        while b"\n" not in self.buffer:
            chunk = await self.stream.receive_some(65536)
            assert chunk, "the session ended"
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        self.heard.append(json.loads(line))
        return self.heard[-1]

    async def ask(self, asked: dict[str, Any]) -> Any:
        await self.say(asked)
        answer = await self.hear()
        assert answer["id"] == asked["id"]
        return answer.get("result") or answer["error"]

    async def tool(self, name: str, arguments: object, meta: object = None) -> Any:
        params = {"name": name, "arguments": arguments, "_meta": meta or {}}
        return await self.ask(message(9, "tools/call", params))


@asynccontextmanager
async def session(
    call: Call = echo,
    greet: bool = True,
    opened: Callable[[Output], None] | None = None,
) -> AsyncIterator[Child]:
    """One session; leaving ends the stream and waits for the session's end."""
    ours, theirs = trio.testing.memory_stream_pair()
    child = Child(theirs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_mcp, ours, b"", call, opened)
        if greet:
            await child.ask(initialize())
            await child.say(INITIALIZED)
        yield child
        await theirs.send_eof()


async def test_a_host_that_probes_is_led_to_the_handshake() -> None:
    async with session(greet=False) as child:
        refused = await child.ask(message("probe-1", "server/discover"))
        result = await child.ask(initialize())

    assert refused["code"] == -32601
    assert result["protocolVersion"] == "2025-11-25"
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert result["serverInfo"]["name"] == "agentworks"


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2024-11-05"])
async def test_the_hosts_own_revision_is_spoken(version: str) -> None:
    async with session(greet=False) as child:
        assert (await child.ask(initialize(version)))["protocolVersion"] == version
        await child.say(INITIALIZED)
        await child.say(message(1, "ping"))
        assert await child.hear() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert len((await child.ask(message(2, "tools/list")))["tools"]) == len(TOOLS)


async def test_the_list_is_the_catalogs_own() -> None:
    async with session() as child:
        result = await child.ask(message(1, "tools/list", {"_meta": {}}))

    assert result == json.loads(listing())


async def test_a_call_has_checked_arguments_and_what_the_host_says_of_it() -> None:
    """Codex names its chat in `_meta`, and only there."""
    seen: list[ToolCall] = []

    async def keep(call: ToolCall) -> ToolOutcome:
        seen.append(call)
        return ToolOutcome("kept")

    turn = {"session_id": "s", "thread_id": "t", "sandbox": "seccomp"}
    meta = {"callId": "c", "progressToken": 1, "x-codex-turn-metadata": turn}
    async with session(keep) as child:
        result = await child.tool("agent_message_read", {"after": 7}, meta)

    arguments = {"inbox_id": "", "after": 7, "start": 0, "limit": 100, "wait_s": 0}
    assert seen == [ToolCall("agent_message_read", "read", arguments, meta)]
    assert result == {"content": [{"type": "text", "text": "kept"}], "isError": False}


async def test_wrong_calls_are_answered_in_words_and_reach_no_verb() -> None:
    async def never(call: ToolCall) -> ToolOutcome:
        raise AssertionError

    async with session(never) as child:
        unknown = await child.tool("agent_attach", {})
        wrong = await child.tool("agent_message_send", {"target": "agent:bob"})
        missing = await child.ask(
            message(3, "tools/call", {"name": "agent_message_ack"})
        )

    assert unknown["isError"] is wrong["isError"] is missing["isError"] is True
    assert "no tool of that name" in unknown["content"][0]["text"]
    assert "`message`" in wrong["content"][0]["text"]
    assert "`message_id`" in missing["content"][0]["text"]


async def test_a_refusal_says_what_and_what_to_do() -> None:
    async def refuse(call: ToolCall) -> ToolOutcome:
        raise Refused("not_attached", "This chat is not attached.", "Attach it.")

    async with session(refuse) as child:
        result = await child.tool("agent_message_peers", {})

    assert result["isError"] is True
    assert result["content"][0]["text"] == "This chat is not attached. Attach it."


async def test_no_text_of_an_exception_reaches_the_host(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(call: ToolCall) -> ToolOutcome:
        raise ExceptionGroup("secret", [ValueError("secret")])

    with caplog.at_level(logging.ERROR):
        async with session(fail) as child:
            result = await child.tool("agent_message_peers", {})
            alive = await child.ask(message(2, "tools/list"))

    assert result["isError"] is True
    assert "secret" not in json.dumps(child.heard)
    assert "submission_id" in result["content"][0]["text"]
    assert alive["tools"]
    assert [record.message for record in caplog.records] == ["a tool failed"]


async def test_an_outcome_that_is_no_unicode_is_still_a_line() -> None:
    async def odd(call: ToolCall) -> ToolOutcome:
        return ToolOutcome("a\ud800b\nc\u2028")

    async with session(odd) as child:
        result = await child.tool("agent_message_peers", {})

    assert result["content"][0]["text"] == "a?b\nc\u2028"


async def test_a_call_that_never_ends_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def hang(call: ToolCall) -> ToolOutcome:
        await trio.sleep_forever()
        raise AssertionError

    async with session(hang) as child:
        result = await child.tool("agent_message_peers", {})

    assert trio.current_time() == 60
    assert result["isError"] is True
    assert "more than 60 seconds" in result["content"][0]["text"]


class Gate:
    """Calls that wait until they are let through."""

    def __init__(self) -> None:
        self.waiting = 0
        self.opened = trio.Event()

    async def __call__(self, call: ToolCall) -> ToolOutcome:
        self.waiting += 1
        try:
            await self.opened.wait()
        finally:
            self.waiting -= 1
        return ToolOutcome("through")


async def test_a_host_with_32_calls_under_way_is_not_read() -> None:
    gate = Gate()
    async with session(gate) as child:
        await child.say(*(peers(number) for number in range(1, CALLS_LIMIT + 9)))
        await child.say(message("later", "tools/list"))
        await trio.testing.wait_all_tasks_blocked()
        held = gate.waiting
        gate.opened.set()
        answered = {(await child.hear())["id"] for _ in range(CALLS_LIMIT + 9)}

    assert held == CALLS_LIMIT
    assert answered == {*range(1, CALLS_LIMIT + 9), "later"}


async def test_a_call_that_the_host_cancelled_makes_room() -> None:
    gate = Gate()
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 3}}
    async with session(gate) as child:
        await child.say(*(peers(number) for number in range(CALLS_LIMIT)))
        await child.say({"jsonrpc": "2.0"} | cancel, peers("more"))
        await trio.testing.wait_all_tasks_blocked()
        held = gate.waiting
        gate.opened.set()
        answered = {(await child.hear())["id"] for _ in range(CALLS_LIMIT)}

    assert held == CALLS_LIMIT
    assert answered == {*range(CALLS_LIMIT), "more"} - {3}


async def test_calls_that_the_sdk_refuses_make_room() -> None:
    """Before the handshake nothing is served, and nothing may be held for it."""
    async with session(greet=False) as child:
        for number in range(CALLS_LIMIT + 5):
            assert (await child.ask(peers(number)))["code"] == -32602


async def test_calls_with_one_id_are_counted_each() -> None:
    async with session() as child:
        await child.say(*(peers(1) for _ in range(CALLS_LIMIT * 2)))
        assert await child.ask(message("end", "tools/list")) if False else True
        for _ in range(CALLS_LIMIT * 2):
            assert (await child.hear())["id"] == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", -32700),
        (b"[]", -32700),
        (b'{"jsonrpc":"2.0","id":1}', -32700),
        (b"[" * 10_000, -32700),
        (b"\xff", -32700),
        (b"x" * (1024 * 1024 + 1), -32600),
        (b"x" * (3 * 1024 * 1024), -32600),
    ],
)
async def test_a_line_that_is_no_message_is_refused_and_the_next_is_served(
    line: bytes, code: int
) -> None:
    async with session() as child:
        await child.stream.send_all(line + b"\n\n \r\n")
        refused = await child.hear()
        listed = await child.ask(message(5, "tools/list"))

    assert refused["id"] is None
    assert refused["error"]["code"] == code
    assert listed["tools"]


async def test_nothing_is_ever_asked_of_the_host() -> None:
    async with session() as child:
        await child.tool("agent_message_peers", {})
        await child.ask(message(1, "tools/list"))
        await child.ask(message(2, "resources/list"))

    assert all("method" not in heard for heard in child.heard)


async def test_the_end_of_the_stream_ends_calls_and_session() -> None:
    gate = Gate()
    async with session(gate) as child:
        await child.say(peers(1))
        await trio.testing.wait_all_tasks_blocked()
        assert gate.waiting == 1

    assert gate.waiting == 0


async def test_a_broken_stream_ends_the_session() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_mcp, ours, as_lines(initialize()), echo)
        await trio.testing.wait_all_tasks_blocked()
        await ours.aclose()
        await theirs.aclose()


async def test_a_host_that_does_not_read_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_mcp, ours, as_lines(initialize()), echo)

    assert trio.current_time() == 60
    await theirs.aclose()


async def test_bytes_that_came_with_the_header_are_served() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    child = Child(theirs)
    whole = as_lines(initialize(), INITIALIZED, message(1, "tools/list"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_mcp, ours, whole[:-9], echo)
        await theirs.send_all(whole[-9:])
        assert [(await child.hear())["id"] for _ in range(2)] == [0, 1]
        await theirs.send_eof()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1, 900), max_size=8))
def test_any_chunking_is_served_alike(cuts: list[int]) -> None:
    whole = as_lines(initialize(), INITIALIZED, peers("a"), message(2, "tools/list"))
    places = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]

    async def one() -> None:
        async with session(greet=False) as child:
            for begin, end in pairwise(places):
                await child.stream.send_all(whole[begin:end])
                await trio.testing.wait_all_tasks_blocked()
            answered = {(await child.hear())["id"] for _ in range(3)}
        assert answered == {0, "a", 2}

    trio.run(one)


async def test_a_chat_goes_on_when_the_bridge_dies_in_the_middle_of_a_call(
    tmp_path: Path,
) -> None:
    """The real pipe, a real socket, the real SDK."""
    state = tmp_path / "state"
    place = state / "bin" / "pipe"
    place.parent.mkdir(parents=True)
    with_first_line(HOOKS / "pipe.py", place)
    called = trio.Event()

    async def dies(connection: Connection) -> None:
        async def hang(call: ToolCall) -> ToolOutcome:
            called.set()
            await trio.sleep_forever()
            raise AssertionError

        assert await connection.line() == b"AW1 mcp claude 0"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_mcp, connection.stream, connection.buffer, hang)
            await called.wait()
            nursery.cancel_scope.cancel()

    async def lives(connection: Connection) -> None:
        assert await connection.line() == b"AW1 mcp claude 0"
        await serve_mcp(connection.stream, connection.buffer, echo)

    async with scripted_daemon(state, dies, lives), host_of(place) as host:
        await host.say(*as_lines(initialize()).splitlines())
        assert (await host.hear())["result"]["protocolVersion"] == "2025-11-25"
        await host.say(*as_lines(INITIALIZED, peers(1)).splitlines())
        lost = await host.hear()
        changed = await host.hear()
        await host.say(*as_lines(peers(2)).splitlines())
        served = await host.hear()

    assert (lost["id"], lost["error"]["code"]) == (1, -32000)
    assert changed == LIST_CHANGED
    assert served["result"]["content"][0]["text"] == "peers {}"


# ---- pushing -------------------------------------------------------------------

PUSHED = {"content": "Ready.", "meta": {"message_id": "msg-1"}}


async def test_only_a_channel_says_that_it_may_push() -> None:
    async with session(greet=False) as child:
        plain = (await child.ask(initialize()))["capabilities"]
    async with session(greet=False, opened=lambda output: None) as child:
        pushing = (await child.ask(initialize()))["capabilities"]

    assert not plain.get("experimental")
    assert pushing["experimental"] == {"claude/channel": {}}
    assert pushing["tools"] == plain["tools"]


async def test_what_is_pushed_is_one_line_between_the_answers() -> None:
    ports: list[Output] = []
    async with session(opened=ports.append) as child:
        await child.ask(message(1, "tools/list"))
        (port,) = ports
        async with trio.open_nursery() as nursery:
            nursery.start_soon(port.notify, "notifications/claude/channel", PUSHED)
            pushed = await child.hear()
        assert (await child.ask(message(2, "tools/list")))["tools"]

    assert pushed == {
        "jsonrpc": "2.0",
        "method": "notifications/claude/channel",
        "params": PUSHED,
    }
    assert not port.is_open


async def test_nothing_is_pushed_before_the_handshake_or_after_the_end() -> None:
    ports: list[Output] = []
    async with session(greet=False, opened=ports.append) as child:
        await child.ask(initialize())
        await trio.testing.wait_all_tasks_blocked()
        assert ports == []
        await child.say(INITIALIZED)
        await child.ask(message(1, "tools/list"))

    (port,) = ports
    with pytest.raises(Unavailable):
        await port.notify("notifications/claude/channel", PUSHED)


class Stuck(trio.abc.SendStream):
    """Takes nothing, or takes nothing for ever."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def send_all(self, data: object) -> None:
        if self._error is not None:
            raise self._error
        await trio.sleep_forever()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.sleep_forever()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("error", [None, trio.BrokenResourceError()])
async def test_a_push_that_broke_is_unsure_and_ends_the_session(
    error: Exception | None, autojump_clock: trio.testing.MockClock
) -> None:
    ended: list[bool] = []
    output = Output(Stuck(error), lambda: ended.append(True))
    output.is_open = True

    with pytest.raises(Unknown):
        await output.notify("notifications/claude/channel", PUSHED)

    assert ended == [True]


async def test_a_push_behind_an_answer_that_is_stuck_was_not_begun(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ended: list[bool] = []
    output = Output(Stuck(), lambda: ended.append(True))
    output.is_open = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(output.answer, "{}")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Unavailable):
            await output.notify("notifications/claude/channel", PUSHED)
        nursery.cancel_scope.cancel()

    assert trio.current_time() == PUSH_S
    assert ended == []
