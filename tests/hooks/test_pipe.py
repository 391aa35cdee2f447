"""The MCP child: a byte pipe that survives a restart of the bridge."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from hooks.pipe import key_of, read, respond, split
from tests.fakes.scripted_daemon import Connection, Script, listen, scripted_daemon
from tests.hooks.host import (
    INITIALIZE,
    INITIALIZED,
    LIST_CHANGED,
    Host,
    answer,
    handshake,
    host_of,
    request,
)
from tests.hooks.runner import run, start

HEADER = b"AW1 mcp claude 0"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs a second uid")


def says(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


async def greet(connection: Connection, version: str = "2025-11-25") -> None:
    """The bridge's side of a new connection with a handshake."""
    assert await connection.line() == HEADER
    assert await connection.line() == INITIALIZE
    await connection.send(says(handshake(version)))


async def serve_calls(connection: Connection) -> list[bytes]:
    """A bridge that lives: handshake, then an answer to everything with an id."""
    await greet(connection)
    seen = []
    while line := await connection.line():
        seen.append(line)
        if "id" in (message := json.loads(line)):
            await connection.send(says(answer(message["id"], "served")))
    return seen


async def greet_and_die(connection: Connection) -> None:
    await greet(connection)
    assert await connection.line() == INITIALIZED


def dies_in(*lines: bytes) -> Script:
    """A bridge that dies once these lines have reached it."""

    async def script(connection: Connection) -> None:
        await greet_and_die(connection)
        for line in lines:
            assert await connection.line() == line

    return script


# ---- a bridge that is there ------------------------------------------------------


async def test_lines_pass_both_ways_as_they_are(pipe: Path, state: Path) -> None:
    odd = b'  {"id" : 7 , "method":"x", "text":"\xc3\xa4\\u00e4"}\r'

    async def echoes(connection: Connection) -> list[bytes]:
        seen = [await connection.line() for _ in range(3)]
        await connection.send(b'{"method":"note"}\n', b' {"id":7.0,"result":0}', b"\n")
        assert await connection.rest() == b""
        return seen

    async with scripted_daemon(state, echoes) as daemon, host_of(pipe) as host:
        await host.say(b"", odd, b"not json")
        assert await host.hear_line() == b'{"method":"note"}'
        assert await host.hear_line() == b' {"id":7.0,"result":0}'

    assert daemon.seen == [[HEADER, odd, b"not json"]]


async def test_the_handshake_is_the_bridges_own(pipe: Path, state: Path) -> None:
    async with scripted_daemon(state, serve_calls) as daemon, host_of(pipe) as host:
        said = await host.shake_hands()
        await host.say(request(1), request("1"))
        heard = [await host.hear(), await host.hear()]

    assert said == json.loads(handshake())
    assert [message["id"] for message in heard] == [1, "1"]
    assert daemon.seen == [[INITIALIZED, request(1), request("1")]]


async def test_a_probe_before_the_handshake_is_the_bridges_to_answer(
    pipe: Path, state: Path
) -> None:
    probe = request("probe", "server/discover")

    async def refuses(connection: Connection) -> None:
        assert await connection.line() == HEADER
        assert await connection.line() == probe
        await connection.send(b'{"id":"probe","error":{"code":-32601}}\n')
        assert await connection.line() == INITIALIZE
        await connection.send(says(handshake()))
        await connection.rest()

    async with scripted_daemon(state, refuses), host_of(pipe) as host:
        await host.say(probe)
        assert (await host.hear())["error"] == {"code": -32601}
        assert await host.shake_hands() == json.loads(handshake())


async def test_garbage_of_a_bridge_is_not_shown(pipe: Path, state: Path) -> None:
    async def babbles(connection: Connection) -> None:
        assert await connection.line() == HEADER
        await connection.send(b"AW1 reply 2\n{]\n[1]\n\xff\n\n" + says(answer(1)))
        await connection.rest()

    async with scripted_daemon(state, babbles), host_of(pipe) as host:
        assert await host.hear_line() == answer(1)


async def test_a_line_over_one_mebibyte_is_refused_and_the_next_passes(
    pipe: Path, state: Path
) -> None:
    async with scripted_daemon(state, serve_calls) as daemon, host_of(pipe) as host:
        await host.shake_hands()
        await host.say(b"x" * (3 << 20), request(2))
        refused, passed = await host.hear(), await host.hear()

    assert refused["id"] is None
    assert refused["error"]["code"] == -32600
    assert passed["id"] == 2
    assert daemon.seen == [[INITIALIZED, request(2)]]


async def test_a_host_waits_when_the_bridge_does_not_read(
    pipe: Path, state: Path
) -> None:
    async def reads_only_the_header(connection: Connection) -> None:
        assert await connection.line() == HEADER
        await stop.wait()

    stop = trio.Event()
    line = request(1)[:-1] + b" " * 100_000 + b"}"
    async with scripted_daemon(state, reads_only_the_header), host_of(pipe) as host:
        with trio.move_on_after(0.5) as patience:
            for _ in range(100):
                await host.say(line)
        stop.set()

    assert patience.cancelled_caught


# ---- a bridge that goes away -----------------------------------------------------


async def test_a_call_whose_bridge_died_has_an_unknown_outcome(
    pipe: Path, state: Path
) -> None:
    script = dies_in(request(5))
    async with scripted_daemon(state, script, serve_calls), host_of(pipe) as host:
        await host.shake_hands()
        await host.say(request(5))
        failed, changed = await host.hear(), await host.hear()
        await host.say(request(6))
        served = await host.hear()

    assert failed["id"] == 5
    assert "unknown" in failed["error"]["message"]
    assert "submission_id" in failed["error"]["message"]
    assert changed == LIST_CHANGED
    assert served == json.loads(answer(6, "served"))


async def test_lists_and_pings_are_asked_again_and_answered_once(
    pipe: Path, state: Path
) -> None:
    asked = [request("a", "tools/list"), request(8, "ping")]
    scripts = dies_in(*asked), serve_calls
    async with scripted_daemon(state, *scripts) as daemon, host_of(pipe) as host:
        await host.shake_hands()
        await host.say(*asked)
        heard = [await host.hear() for _ in range(3)]

    assert heard[0] == LIST_CHANGED
    assert [message["id"] for message in heard[1:]] == ["a", 8]
    assert daemon.seen[1] == [INITIALIZED, *asked]


async def test_what_the_bridge_answered_before_it_died_is_not_unknown(
    pipe: Path, state: Path
) -> None:
    """The pipe may be writing to a socket that is already closed."""

    async def answers_and_dies(connection: Connection) -> None:
        await greet_and_die(connection)
        assert await connection.line() == request(1)
        await connection.stream.send_all(says(answer(1)))

    scripts = answers_and_dies, serve_calls
    async with scripted_daemon(state, *scripts), host_of(pipe) as host:
        await host.shake_hands()
        await host.say(request(1))
        assert await host.hear() == json.loads(answer(1))
        assert await host.hear() == LIST_CHANGED


async def test_a_handshake_that_was_not_answered_is_answered_once(
    pipe: Path, state: Path
) -> None:
    async def dies_shaking_hands(connection: Connection) -> None:
        assert await connection.line() == HEADER
        assert await connection.line() == INITIALIZE

    scripts = dies_shaking_hands, dies_shaking_hands, serve_calls
    async with scripted_daemon(state, *scripts) as daemon, host_of(pipe) as host:
        assert await host.shake_hands() == json.loads(handshake())
        await host.say(request(1))
        assert await host.hear() == json.loads(answer(1, "served"))

    assert daemon.seen[2] == [INITIALIZED, request(1)]


async def test_a_request_made_meanwhile_waits_for_the_bridge(
    pipe: Path, state: Path
) -> None:
    async with host_of(pipe) as host:
        async with scripted_daemon(state, greet_and_die):
            await host.shake_hands()
        (state / "run" / "bridge.sock").unlink()
        await host.say(request(3))
        async with scripted_daemon(state, serve_calls) as daemon:
            assert await host.hear() == LIST_CHANGED
            assert await host.hear() == json.loads(answer(3, "served"))
            await host.stdin.aclose()

    assert daemon.seen == [[INITIALIZED, request(3)]]


async def test_only_an_answered_handshake_counts_as_a_connection(
    pipe: Path, state: Path
) -> None:
    """A dying listener still accepts."""
    sent_to_the_dying: list[bytes] = []

    async def accepts_and_dies(connection: Connection) -> None:
        assert await connection.line() == HEADER
        assert await connection.line() == INITIALIZE
        with trio.move_on_after(0.1):
            sent_to_the_dying.append(await connection.line())

    scripts = dies_in(request(1)), accepts_and_dies, accepts_and_dies, serve_calls
    async with scripted_daemon(state, *scripts), host_of(pipe) as host:
        await host.shake_hands()
        await host.say(request(1))
        assert (await host.hear())["error"]["code"] == -32000
        await host.say(request(2))
        heard = [await host.hear() for _ in range(2)]

    assert sent_to_the_dying == []
    assert heard == [LIST_CHANGED, json.loads(answer(2, "served"))]


async def test_a_bridge_that_refuses_the_handshake_is_tried_again(
    pipe: Path, state: Path
) -> None:
    async def refuses(connection: Connection) -> bytes:
        assert await connection.line() == HEADER
        assert await connection.line() == INITIALIZE
        await connection.send(b'{"id":0,"error":{"code":-32603,"message":"not now"}}\n')
        return await connection.rest()

    scripts = dies_in(request(1)), refuses, serve_calls
    async with scripted_daemon(state, *scripts) as daemon, host_of(pipe) as host:
        await host.shake_hands()
        await host.say(request(1))
        assert (await host.hear())["id"] == 1
        assert await host.hear() == LIST_CHANGED

    assert daemon.seen[1] == b""


async def test_another_protocol_version_ends_the_pipe(pipe: Path, state: Path) -> None:
    async def newer(connection: Connection) -> None:
        await greet(connection, "2026-07-28")

    async with scripted_daemon(state, dies_in(), newer), host_of(pipe) as host:
        await host.shake_hands()
        assert await host.process.wait() == 1


@pytest.mark.slow
async def test_a_bridge_that_stays_away_is_said_to_be_stopped(
    pipe: Path, state: Path
) -> None:
    async with host_of(pipe) as host:
        async with scripted_daemon(state, greet_and_die):
            await host.shake_hands()
        await host.say(request(3))
        said = await host.hear()

    assert said["id"] == 3
    assert said["result"]["isError"] is True


# ---- a bridge that is stopped ----------------------------------------------------


async def ask_everything(host: Host) -> dict[str, Any]:
    await host.say(request("probe", "server/discover"))
    heard = {"probe": await host.hear(), "handshake": await host.shake_hands()}
    for name, method in {
        "list": "tools/list", "call": "tools/call", "ping": "ping", "odd": "odd/one",
    }.items():  # fmt: skip
        await host.say(request(name, method))
        heard[name] = await host.hear()
    return heard


async def test_without_a_bridge_the_handshake_succeeds_and_tools_say_how_to_start_it(
    pipe: Path,
) -> None:
    async with host_of(pipe) as host:
        heard = await ask_everything(host)

    handshake_result = heard["handshake"]["result"]
    assert handshake_result["protocolVersion"] == "2025-11-25"
    assert handshake_result["capabilities"] == {"tools": {"listChanged": True}}
    assert heard["list"]["result"] == {"tools": []}
    assert heard["call"]["result"]["isError"] is True
    assert "agentworks up" in heard["call"]["result"]["content"][0]["text"]
    assert heard["ping"]["result"] == {}
    assert heard["probe"]["error"]["code"] == heard["odd"]["error"]["code"] == -32601


async def test_the_installed_list_of_tools_stands_in(pipe: Path, state: Path) -> None:
    tools = {"tools": [{"name": "agent_message_send", "inputSchema": {}}]}
    (state / "bin" / "tools.json").write_text(json.dumps(tools, indent=1))
    async with host_of(pipe) as host:
        heard = await ask_everything(host)

    assert heard["list"]["result"] == tools


async def test_a_bridge_that_is_started_takes_over(pipe: Path, state: Path) -> None:
    async with host_of(pipe) as host:
        await ask_everything(host)
        async with scripted_daemon(state, serve_calls) as daemon:
            assert await host.hear() == LIST_CHANGED
            await host.say(request(9))
            assert await host.hear() == json.loads(answer(9, "served"))
            await host.stdin.aclose()

    assert daemon.seen == [[INITIALIZED, request(9)]]


@pytest.mark.slow
async def test_a_bridge_that_never_answers_is_a_stopped_one(
    pipe: Path, state: Path
) -> None:
    """The kernel accepts for a stopped process."""
    listener = listen(state)
    async with host_of(pipe) as host:
        said = await host.shake_hands()
    listener.close()

    assert said["result"]["protocolVersion"] == "2025-11-25"


async def test_a_folder_open_to_others_is_no_bridge(pipe: Path, state: Path) -> None:
    async with scripted_daemon(state, serve_calls) as daemon:
        (state / "run").chmod(0o750)
        async with host_of(pipe) as host:
            heard = await ask_everything(host)

    assert heard["call"]["result"]["isError"] is True
    assert daemon.seen == []


@needs_root
async def test_a_bridge_of_another_uid_hears_nothing(pipe: Path, state: Path) -> None:
    listener = listen(state)
    os.seteuid(65534)
    try:
        listener.listen()
    finally:
        os.seteuid(0)
    async with host_of(pipe) as host:
        heard = await ask_everything(host)
    accepted, _ = listener.accept()

    assert heard["call"]["result"]["isError"] is True
    assert accepted.recv(100) == b""
    accepted.close()
    listener.close()


# ---- its life --------------------------------------------------------------------


@pytest.mark.slow
async def test_it_ends_with_its_parent(pipe: Path, state: Path) -> None:
    """A host may die without closing the pipe, when others hold it too."""
    started = trio.Event()

    async def sees_it_come_and_go(connection: Connection) -> bytes:
        assert await connection.line() == HEADER
        started.set()
        return await connection.rest()

    parent = (
        "import subprocess, sys; subprocess.Popen(sys.argv[1:]); sys.stdin.readline()"
    )
    reader, writer = os.pipe()
    async with scripted_daemon(state, sees_it_come_and_go) as daemon:
        command = (sys.executable, "-c", parent, pipe, "mcp", "claude")
        process = await start(*command, stdin=reader)
        await started.wait()
        process.kill()
        await process.wait()
    os.close(reader)
    os.close(writer)
    assert process.stdout is not None
    await process.stdout.aclose()

    assert daemon.seen == [b""]


async def test_it_ends_when_nobody_reads_it(pipe: Path) -> None:
    async with host_of(pipe) as host:
        await host.stdout.aclose()
        assert await host.process.wait() == 0


async def test_it_ends_when_it_is_told_to(pipe: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        async with host_of(pipe) as host:
            await host.shake_hands()
            host.process.send_signal(number)
            assert await host.process.wait() == -number


@pytest.mark.parametrize(
    "words",
    [("mcp",), ("call", "claude"), ("mcp", "a b"), ("mcp", "claude", "wide channel")],
)
async def test_a_wrong_command_line_is_refused(
    pipe: Path, words: tuple[str, ...]
) -> None:
    ran = await run(pipe, *words)

    assert ran.exit == 1
    assert ran.stderr == b"usage: pipe mcp <provider> [channel]\n"


async def test_a_channel_says_so_behind_the_length_for_bridges_that_know_it(
    pipe: Path, state: Path
) -> None:
    async def script(connection: Connection) -> None:
        assert await connection.line() == HEADER + b" channel"
        assert await connection.line() == INITIALIZE
        await connection.send(says(handshake(), b'{"method":"notifications/x"}'))
        assert await connection.line() == b""  # there until it has gone

    async with (
        scripted_daemon(state, script),
        host_of(pipe, "mcp", "claude", "channel") as host,
    ):
        await host.say(INITIALIZE)

        assert await host.hear_line() == handshake()
        assert await host.hear() == {"method": "notifications/x"}


@pytest.mark.parametrize("is_channel", [False, True])
async def test_with_no_bridge_only_a_channel_says_that_it_may_push(
    pipe: Path, state: Path, is_channel: bool
) -> None:
    words = ["mcp", "claude", *(["channel"] if is_channel else [])]
    async with host_of(pipe, *words) as host:
        capabilities = (await host.shake_hands())["result"]["capabilities"]

    assert capabilities["tools"] == {"listChanged": True}
    assert ("claude/channel" in capabilities.get("experimental", {})) is is_channel


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_it_stays_within_twelve_megabytes(pipe: Path, state: Path) -> None:
    large = request(1)[:-2] + b',"text":"' + b"x" * 20_000 + b'"}}'
    large = large.replace(b'{,"', b'{"')
    async with scripted_daemon(state, serve_calls), host_of(pipe) as host:
        await host.shake_hands()
        for _ in range(30):
            await host.say(large)
            assert (await host.hear())["id"] == 1
        status = Path(f"/proc/{host.process.pid}/status").read_text()

    resident_kb = int(status.partition("VmRSS:")[2].split()[0])
    assert resident_kb <= 12_000


# ---- its grammar -----------------------------------------------------------------

ids = st.one_of(
    st.integers(), st.text(), st.floats(allow_nan=False, allow_infinity=False)
)
bodies = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(ids, bodies, st.sampled_from([None, 1]), st.booleans())
def test_an_id_is_read_as_the_json_value_that_it_is(
    number: object, params: object, indent: int | None, ascii_only: bool
) -> None:
    message = {"method": "x", "params": {"id": "inner", "more": params}, "id": number}
    text = json.dumps(message, ensure_ascii=ascii_only, indent=indent)
    try:
        line = text.encode()
    except UnicodeEncodeError:  # a lone surrogate is no UTF-8
        return
    seen = read(line)
    answered = json.loads(respond(key_of(seen), '"result":{}'))

    assert seen["method"] == "x"
    assert answered["id"] == number
    assert isinstance(answered["id"], str) == isinstance(number, str)


def test_ids_are_the_same_when_their_values_are() -> None:
    def key(text: str) -> object:
        return key_of(read(b'{"id":%b}' % text.encode()))

    assert key("1") == key("1.0") == key("1e0")
    assert key('"a"') == key('"\\u0061"')
    assert len({key(text) for text in ('"1"', "1", '"1.0"', "10", '"number"')}) == 5
    assert key("null") is key("true") is key("[1]") is key('{"a":1}') is None


@pytest.mark.parametrize(
    "line",
    [
        b"", b"[]", b"1", b"{", b"{} {}", b'{"id":01}', b"\xff{}", b'{"id":1,}',
        b"[" * 100_000, b'{"id":' * 100_000, b'{"a":"\n"}',
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_no_message(line: bytes) -> None:
    assert read(line) == {}


@given(st.lists(st.binary(max_size=12)), st.lists(st.integers(0, 60)))
def test_any_chunking_gives_the_same_lines(lines: list[bytes], cuts: list[int]) -> None:
    whole = says(*(line.replace(b"\n", b"") for line in lines)) + b"rest"
    places = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    partial, seen = b"", []
    for begin, end in itertools.pairwise(places):
        found, partial = split(partial, whole[begin:end], 10)
        seen += found
    expected = [line if len(line) <= 10 else None for line in whole.split(b"\n")[:-1]]

    assert seen == expected
    assert partial == b"rest"
