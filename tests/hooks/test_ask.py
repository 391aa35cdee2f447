"""The hook client and its twin: one conformance suite, every row for both."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.scripted_daemon import Connection, Script, listen, scripted_daemon
from tests.hooks.conftest import Install, compile_ask
from tests.hooks.runner import SILENT, STDIN, output, run, start

STOP = ("hook", "claude", "Stop")
COMMAND = ("hook", "claude", "UserPromptExpansion", "--else", "BLOCK")
PRINTED = b"AW1 printed 0\n"
UNPRINTED = b"AW1 unprinted 0\n"
HELLO = b"AW1 print 0 stdout 5\nhello"
MIB = 1 << 20

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs a second uid")


def answers(*chunks: bytes) -> Script:
    """A daemon that reads the request, sends chunks and waits for the outcome."""

    async def script(connection: Connection) -> bytes:
        await connection.request()
        await connection.send(*chunks)
        return await connection.rest()

    return script


def hangs_up_after(*chunks: bytes) -> Script:
    """A daemon that sends chunks and sends nothing more, but still listens."""

    async def script(connection: Connection) -> bytes:
        await connection.request()
        await connection.send(*chunks)
        await connection.stream.send_eof()
        return await connection.rest()

    return script


async def whole_request(connection: Connection) -> tuple[bytes, bytes]:
    seen = await connection.request()
    await connection.send(b"AW1 print 0 stdout 0\n")
    return seen


async def wait_stopped(process: trio.Process) -> None:
    """Until the kernel says that a signal stopped it."""
    options = os.WSTOPPED | os.WNOWAIT
    await trio.to_thread.run_sync(os.waitid, os.P_PID, process.pid, options)


# ---- the request -----------------------------------------------------------------


async def test_the_body_is_the_hosts_stdin_verbatim(ask: Path, state: Path) -> None:
    stdin = b'{"a": "\xff\x00\n"}\n'
    async with scripted_daemon(state, whole_request) as daemon:
        ran = await run(ask, *STOP, stdin=stdin)

    assert ran.outcome == SILENT
    assert daemon.seen == [(b"AW1 hook claude Stop %d" % len(stdin), stdin)]


@pytest.mark.parametrize("redirection", ["</dev/null", "<&-"])
async def test_a_stdin_that_has_nothing_is_an_empty_body(
    ask: Path, state: Path, redirection: str
) -> None:
    async with scripted_daemon(state, whole_request) as daemon:
        line = f'exec "$0" hook script stop {redirection}'
        ran = await run("/bin/sh", "-c", line, ask, stdin=b"")

    assert ran.outcome == SILENT
    assert daemon.seen == [(b"AW1 hook script stop 0", b"")]


async def test_a_terminal_on_stdin_is_an_empty_body(ask: Path, state: Path) -> None:
    mine, terminal = pty.openpty()
    async with scripted_daemon(state, whole_request) as daemon:
        ran = await run(ask, "hook", "script", "stop", stdin=terminal)
    os.close(terminal)
    os.close(mine)

    assert daemon.seen == [(b"AW1 hook script stop 0", b"")]
    assert ran.seconds < 1


async def test_a_stdin_left_open_ends_at_its_closing_brace(
    ask: Path, state: Path
) -> None:
    async with scripted_daemon(state, whole_request) as daemon:
        process = await start(ask, *STOP)
        assert process.stdin is not None
        await process.stdin.send_all(b'{"a": {"b": 1} } \r\n')
        assert await process.wait() == 0
        await process.stdin.aclose()

    assert daemon.seen == [(b"AW1 hook claude Stop 19", b'{"a": {"b": 1} } \r\n')]


@pytest.mark.slow
async def test_a_stdin_left_open_without_a_brace_is_empty_or_no_request(
    ask: Path, state: Path
) -> None:
    async def whatever_comes(connection: Connection) -> bytes:
        await connection.stream.send_all(b"AW1 print 0 stdout 0\n")
        return await connection.rest()

    async def ends_after(text: bytes) -> None:
        process = await start(ask, *STOP)
        assert process.stdin is not None
        await process.stdin.send_all(text)
        assert await process.wait() == 0
        await process.stdin.aclose()

    async with (
        scripted_daemon(state, whatever_comes) as daemon,
        trio.open_nursery() as hosts,
    ):
        hosts.start_soon(ends_after, b"")
        hosts.start_soon(ends_after, b'{"half": ')
        hosts.start_soon(ends_after, b" \n")

    requests = [seen for seen in daemon.seen if seen]
    assert len(daemon.seen) == 3
    assert requests == [b"AW1 hook claude Stop 0\n"]


async def test_three_mebibytes_go_out_while_the_reply_is_read(
    ask: Path, state: Path
) -> None:
    """A daemon may speak before it has read all."""
    stdin = b"{" + b"x" * (3 * MIB) + b"}"

    async def speaks_first(connection: Connection) -> bool:
        await connection.send(b"AW1 wait 5 0 stdout 4\nwait")
        seen = await connection.request()
        await connection.send(HELLO)
        return seen[1] == stdin and await connection.rest() == PRINTED

    async with scripted_daemon(state, speaks_first) as daemon:
        ran = await run(ask, *STOP, stdin=stdin)

    assert ran.outcome == (0, b"hello", b"")
    assert daemon.seen == [True]


async def test_an_answer_before_the_whole_request_gets_no_outcome(
    ask: Path, state: Path
) -> None:
    """The outcome would be read as a part of the body."""

    async def refuses_at_once(connection: Connection) -> bool:
        await connection.send(b"AW1 print 0 stderr 4\nbusy")
        return (await connection.rest()).endswith((b"x", b"}"))

    async with scripted_daemon(state, refuses_at_once) as daemon:
        ran = await run(ask, *STOP, stdin=b"{" + b"x" * (3 * MIB) + b"}")

    assert ran.outcome == (0, b"", b"busy")
    assert daemon.seen == [True]


async def test_eight_mebibytes_are_a_request_and_one_byte_more_is_none(
    ask: Path, state: Path
) -> None:
    async def length(connection: Connection) -> int:
        return len((await connection.request())[1])

    async with scripted_daemon(state, length) as daemon:
        await run(ask, *STOP, stdin=b"x" * (8 * MIB))
    assert daemon.seen == [8 * MIB]
    (state / "run" / "bridge.sock").unlink()

    async with scripted_daemon(state, Connection.rest) as daemon:
        ran = await run(ask, *COMMAND, stdin=b"x" * (8 * MIB + 1))
    assert ran.outcome == (0, b"BLOCK", b"")
    assert daemon.seen == [b""]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("hook",),
        ("hook", "claude"),
        ("hook", "claude", "Stop", "more"),
        ("hook", "claude", "Stop", "--else"),
        ("hook", "cla ude", "Stop"),
        ("hook", "claude", "Stop\n"),
        ("hook", "", "Stop"),
        ("hook", "claude", "St\u00f6p"),
        ("hook", "c" * 122, "S" * 122),
        ("call", "claude", "Stop"),
    ],
)
async def test_a_wrong_command_line_asks_nothing(
    ask: Path, state: Path, words: tuple[str, ...]
) -> None:
    async with scripted_daemon(state, Connection.rest) as daemon:
        ran = await run(ask, *words)

    assert ran.outcome == SILENT
    assert not any(daemon.seen)


# ---- where the daemon is ---------------------------------------------------------


async def test_without_a_daemon_nothing_is_printed(ask: Path, state: Path) -> None:
    nowhere = await run(ask, *STOP)
    (state / "run").mkdir(mode=0o700)
    no_socket = await run(ask, *STOP)
    listen(state).close()
    refused = await run(ask, *STOP)

    assert nowhere.outcome == no_socket.outcome == refused.outcome == SILENT


async def test_the_constant_stands_in_for_a_daemon(ask: Path) -> None:
    constant = "the bridge is not running: \u00e4 %s \\n"
    ran = await run(ask, *COMMAND[:-1], constant)

    assert ran.outcome == (0, constant.encode(), b"")


async def test_a_constant_of_any_bytes_comes_out_as_it_went_in(ask: Path) -> None:
    constant = os.fsdecode(b"\xff\xfe{}")
    ran = await run(ask, *COMMAND[:-1], constant, env={"LC_ALL": "C.UTF-8"})

    assert ran.stdout == b"\xff\xfe{}"


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
async def test_a_folder_open_to_others_is_refused(
    ask: Path, state: Path, mode: int
) -> None:
    async with scripted_daemon(state, answers(HELLO)) as daemon:
        (state / "run").chmod(mode)
        ran = await run(ask, *STOP)

    assert ran.outcome == SILENT
    assert daemon.seen == []


async def test_a_folder_behind_a_link_is_refused(ask: Path, state: Path) -> None:
    async with scripted_daemon(state, answers(HELLO)) as daemon:
        (state / "run").rename(state / "elsewhere")
        (state / "run").symlink_to("elsewhere")
        ran = await run(ask, *STOP)

    assert ran.outcome == SILENT
    assert daemon.seen == []


async def test_a_file_in_the_folders_place_is_refused(ask: Path, state: Path) -> None:
    (state / "run").touch()

    assert (await run(ask, *STOP)).outcome == SILENT


@needs_root
async def test_a_folder_of_another_owner_is_refused(ask: Path, state: Path) -> None:
    async with scripted_daemon(state, answers(HELLO)) as daemon:
        os.chown(state / "run", 65534, 65534)
        ran = await run(ask, *STOP)

    assert ran.outcome == SILENT
    assert daemon.seen == []


@needs_root
async def test_a_daemon_of_another_uid_is_told_nothing(ask: Path, state: Path) -> None:
    listener = listen(state)
    os.seteuid(65534)
    try:
        listener.listen()  # a listener's credentials are those of this moment
    finally:
        os.seteuid(0)
    ran = await run(ask, *COMMAND)
    accepted, _ = listener.accept()

    assert ran.outcome == (0, b"BLOCK", b"")
    assert accepted.recv(100) == b""
    accepted.close()
    listener.close()


async def test_a_full_backlog_is_no_daemon(
    ask: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = listen(state, backlog=0)
    monkeypatch.chdir(state / "run")
    clients = [listener]
    while len(clients) < 3 or not clients[-1].connect_ex("bridge.sock"):
        clients.append(socket.socket(socket.AF_UNIX))
        clients[-1].setblocking(False)
    ran = await run(ask, *STOP)

    assert ran.outcome == SILENT
    for client in clients:
        client.close()


async def test_a_state_folder_of_any_length_works(
    tmp_path: Path, install: Install
) -> None:
    state = tmp_path / ("a" * 135) / ("b" * 200)
    ask = install(state)
    async with scripted_daemon(state, answers(HELLO)) as daemon:
        ran = await run(ask, *STOP)

    assert ran.stdout == b"hello"
    assert daemon.seen == [PRINTED]


async def test_links_on_the_way_to_the_program_are_followed(
    ask: Path, state: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(ask)
    (tmp_path / "relative").symlink_to("link")
    (tmp_path / "moved").symlink_to(state)
    async with scripted_daemon(state, answers(HELLO)) as daemon:
        for program in (tmp_path / "relative", tmp_path / "moved" / "bin" / "ask"):
            assert (await run(program, *STOP)).stdout == b"hello"

    assert daemon.seen == [PRINTED, PRINTED]


async def test_no_variable_leads_elsewhere(
    ask: Path, state: Path, tmp_path: Path
) -> None:
    other = str(tmp_path / "other")
    names = (
        "AGENTWORKS_STATE", "AGENTWORKS_CONFIG", "HOME", "XDG_STATE_HOME",
        "XDG_RUNTIME_DIR", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PWD",
    )  # fmt: skip
    misleading = dict.fromkeys(names, other)
    async with scripted_daemon(state, answers(HELLO)) as daemon:
        assert (await run(ask, *STOP, env=misleading)).stdout == b"hello"

    assert daemon.seen == [PRINTED]


# ---- what is printed -------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "outcome"),
    [
        (b"AW1 print 0 stdout 5", (0, b"hello", b"")),
        (b"AW1 print 2 stderr 5", (2, b"", b"hello")),
        (b"AW1 print 255 stdout 5", (255, b"hello", b"")),
        (b"AW1 print 000 stdout 05", (0, b"hello", b"")),
        (b"AW1 print 0 stdout 5 words of a later version \xff", (0, b"hello", b"")),
    ],
)
async def test_a_print_decides_stream_and_exit_code(
    ask: Path, state: Path, header: bytes, outcome: tuple[int, bytes, bytes]
) -> None:
    async with scripted_daemon(state, answers(header + b"\nhello")) as daemon:
        ran = await run(ask, *STOP)

    assert ran.outcome == outcome
    assert daemon.seen == [PRINTED]


@pytest.mark.parametrize("words", [STOP, COMMAND])
async def test_nothing_to_print_ends_the_dialogue(
    ask: Path, state: Path, words: tuple[str, ...]
) -> None:
    script = answers(b"AW1 print 3 stdout 0\n")
    async with scripted_daemon(state, script) as daemon:
        ran = await run(ask, *words)

    assert ran.outcome == (3, b"", b"")
    assert daemon.seen == [b""]


async def test_what_follows_a_print_is_ignored(ask: Path, state: Path) -> None:
    for more in (b"AW1 print 1 stderr 3\nbad", b"garbage"):
        async with scripted_daemon(state, answers(HELLO + more)) as daemon:
            ran = await run(ask, *STOP)
        (state / "run" / "bridge.sock").unlink()

        assert ran.outcome == (0, b"hello", b"")
        assert daemon.seen in ([PRINTED], [b""])  # a reset may swallow it


async def test_frames_may_be_split_at_every_byte(ask: Path, state: Path) -> None:
    whole = b"AW1 wait 9 0 stdout 2\nno" + HELLO
    for cut in range(len(whole) + 1):
        async with scripted_daemon(state, answers(whole[:cut], whole[cut:])) as daemon:
            ran = await run(ask, *STOP)
        (state / "run" / "bridge.sock").unlink()

        assert (ran.outcome, daemon.seen) == ((0, b"hello", b""), [PRINTED])


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    text=st.binary(max_size=300),
    waits=st.lists(st.binary(max_size=40), max_size=3),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_any_chunking_of_any_dialogue_prints_the_text_once(
    ask: Path, state: Path, text: bytes, waits: list[bytes], cuts: list[int]
) -> None:
    whole = b"".join(b"AW1 wait 9 1 stderr %d\n%b" % (len(t), t) for t in waits)
    whole += b"AW1 print 0 stdout %d\n%b" % (len(text), text)
    places = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    chunks = [whole[a:b] for a, b in pairwise(places) if a < b]

    async def one() -> None:
        (state / "run" / "bridge.sock").unlink(missing_ok=True)
        async with scripted_daemon(state, answers(*chunks)) as daemon:
            ran = await run(ask, *STOP)
        assert ran.outcome == (0, text, b"")
        assert daemon.seen == [PRINTED if text else b""]

    trio.run(one)


async def test_a_host_that_does_not_read_yet_is_waited_for(
    ask: Path, state: Path
) -> None:
    text = b"x" * (MIB - 100)
    frame = b"AW1 print 0 stdout %d\n%b" % (len(text), text)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    async with scripted_daemon(state, answers(frame)) as daemon:
        process = await start(ask, *STOP, stdin=subprocess.DEVNULL, stdout=writer)
        os.close(writer)
        read = b""
        async with trio.lowlevel.FdStream(reader) as host:
            while chunk := await host.receive_some(4096):
                read += chunk
        assert await process.wait() == 0

    assert read == text
    assert daemon.seen == [PRINTED]


async def test_a_host_that_closed_its_end_makes_it_unprinted(
    ask: Path, state: Path
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    async with scripted_daemon(state, answers(HELLO)) as daemon:
        process = await start(ask, *STOP, stdin=subprocess.DEVNULL, stdout=writer)
        os.close(writer)
        assert await process.wait() == 0

    assert daemon.seen == [UNPRINTED]


@pytest.mark.parametrize("redirection", [">&-", "<&- >&- 2>&-", ">/dev/full"])
async def test_a_stdout_that_takes_nothing_makes_it_unprinted(
    ask: Path, state: Path, redirection: str
) -> None:
    async with scripted_daemon(state, answers(HELLO)) as daemon:
        line = f'exec "$0" hook claude Stop {redirection}'
        ran = await run("/bin/sh", "-c", line, ask)

    assert ran.outcome == SILENT
    assert daemon.seen == [UNPRINTED]


async def test_partly_printed_is_neither_outcome(ask: Path, state: Path) -> None:
    text = b"x" * (MIB - 100)
    frame = b"AW1 print 2 stdout %d\n%b" % (len(text), text)
    reader, writer = os.pipe()
    async with scripted_daemon(state, answers(frame)) as daemon:
        process = await start(ask, *STOP, stdin=subprocess.DEVNULL, stdout=writer)
        os.close(writer)
        await trio.lowlevel.wait_readable(reader)
        os.close(reader)
        assert await process.wait() == 0

    assert daemon.seen == [b""]


# ---- giving up -------------------------------------------------------------------

GARBAGE = [
    b"\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"AW2 print 0 stdout 5\nhello",
    b"AW1 shout 0 stdout 5\nhello",
    b"AW1 print 0 stdout 5\r\nhello",
    b"AW1 print 0 stdout\nhello",
    b"AW1 print 0 stdout five\nhello",
    b"AW1 print 0 stdout -5\nhello",
    b"AW1 print 0 stdout +5\nhello",
    b"AW1 print 0 stdout 5x\nhello",
    b"AW1 print 0 stdout  5\nhello",
    b"AW1 print 0  stdout 5\nhello",
    b"AW1 print 0 stdin 5\nhello",
    b"AW1 print 256 stdout 5\nhello",
    b"AW1 print 0x1 stdout 5\nhello",
    b"AW1 print stdout 5\nhello",
    b"AW1 print 0 stdout 1048577\nhello",
    b"AW1 print 0 stdout 1048576\nhello",  # with its header it is over the limit
    b"AW1 print 0 stdout 99999999999999999999999\nhello",
    b"AW1 wait 601 0 stdout 0\n" + HELLO,
    b"AW1 wait 0 stdout 0\n" + HELLO,
    b" " + HELLO,
    b"A" * 256,
    b"AW1 print 0 stdout 5 " + b"x" * 235 + b"\nhello",  # 257 bytes
    b"\0" * 300,
]


@pytest.mark.parametrize("garbage", GARBAGE)
async def test_garbage_is_not_printed(ask: Path, state: Path, garbage: bytes) -> None:
    async with scripted_daemon(state, answers(garbage)) as daemon:
        ran = await run(ask, *STOP)

    assert ran.outcome == SILENT
    assert daemon.seen == [UNPRINTED]


async def test_a_header_of_256_bytes_is_read(ask: Path, state: Path) -> None:
    header = b"AW1 print 0 stdout 5 " + b"x" * 234 + b"\n"
    assert len(header) == 256
    async with scripted_daemon(state, answers(header + b"hello")) as daemon:
        assert (await run(ask, *STOP)).stdout == b"hello"

    assert daemon.seen == [PRINTED]


@pytest.mark.parametrize("sent", [b"", b"AW1 pri", HELLO[:-5], HELLO[:-1]])
async def test_a_daemon_that_closes_early_prints_nothing(
    ask: Path, state: Path, sent: bytes
) -> None:
    async with scripted_daemon(state, hangs_up_after(sent)) as daemon:
        ran = await run(ask, *STOP)
        constant = await run(ask, *COMMAND)

    assert ran.outcome == SILENT
    assert constant.outcome == (0, b"BLOCK", b"")
    assert daemon.seen == [UNPRINTED, UNPRINTED]


async def test_a_daemon_that_closes_unread_prints_nothing(
    ask: Path, state: Path
) -> None:
    async def closes(connection: Connection) -> None:
        await connection.stream.aclose()

    async with scripted_daemon(state, closes):
        ran = await run(ask, *STOP, stdin=b"x" * (3 * MIB))

    assert ran.outcome == SILENT


async def test_a_daemon_silent_for_300_ms_is_given_up(ask: Path, state: Path) -> None:
    async with scripted_daemon(state, answers()) as daemon:
        ran = await run(ask, *STOP)

    assert ran.outcome == SILENT
    assert daemon.seen == [UNPRINTED]
    assert 0.29 <= ran.seconds < 1.5


async def test_a_frame_that_comes_in_drops_is_no_sign_of_life(
    ask: Path, state: Path
) -> None:
    async def drips(connection: Connection) -> bytes:
        await connection.request()
        for drop in (b"AW1 ", b"print 0 ", b"stdout 5\n", b"he"):
            # The client may have given up before the last one.
            with contextlib.suppress(trio.BrokenResourceError):
                await connection.send(drop)
            await trio.sleep(0.08)
        return await connection.rest()

    async with scripted_daemon(state, drips) as daemon:
        ran = await run(ask, *STOP)

    assert ran.outcome == SILENT
    assert daemon.seen == [UNPRINTED]
    assert ran.seconds < 1.5


async def test_a_stopped_daemon_is_given_up(ask: Path, state: Path) -> None:
    """The kernel still accepts for it."""
    (state / "run").mkdir(mode=0o700)
    source = (
        "import os, signal, socket; s = socket.socket(socket.AF_UNIX);"
        "s.bind('bridge.sock'); s.listen(); os.kill(os.getpid(), signal.SIGSTOP)"
    )
    command = [sys.executable, "-c", source]
    daemon = await trio.lowlevel.open_process(command, cwd=state / "run")
    await wait_stopped(daemon)
    small = await run(ask, *STOP)
    large = await run(ask, *COMMAND, stdin=b"x" * (3 * MIB))
    daemon.kill()
    await daemon.wait()

    assert small.outcome == SILENT
    assert large.outcome == (0, b"BLOCK", b"")
    assert 0.29 <= small.seconds < 1.5


# ---- waiting ---------------------------------------------------------------------


async def test_a_wait_extends_the_deadline(ask: Path, state: Path) -> None:
    async def takes_its_time(connection: Connection) -> bytes:
        await connection.request()
        await connection.send(b"AW1 wait 5 1 stderr 5\nsorry")
        await trio.sleep(0.4)
        await connection.send(HELLO)
        return await connection.rest()

    async with scripted_daemon(state, takes_its_time) as daemon:
        ran = await run(ask, *STOP)

    assert ran.outcome == (0, b"hello", b"")
    assert daemon.seen == [PRINTED]


async def test_a_wait_that_ends_without_a_print_leaves_its_own_text(
    ask: Path, state: Path
) -> None:
    script = answers(b"AW1 wait 9 0 stdout 3\nold", b"AW1 wait 1 2 stderr 5\nsorry")
    async with scripted_daemon(state, script) as daemon:
        ran = await run(ask, *COMMAND)

    assert ran.outcome == (2, b"", b"sorry")
    assert daemon.seen == [UNPRINTED]
    assert 0.99 <= ran.seconds < 3


@pytest.mark.parametrize("then", [b"", b"garbage\n", b"AW1 print 0 stdout 5\nhe"])
async def test_a_daemon_lost_after_a_wait_leaves_the_waits_text(
    ask: Path, state: Path, then: bytes
) -> None:
    script = hangs_up_after(b"AW1 wait 9 0 stdout 5\nsorry", then)
    async with scripted_daemon(state, script) as daemon:
        ran = await run(ask, *COMMAND)

    assert ran.outcome == (0, b"sorry", b"")
    assert daemon.seen == [UNPRINTED]
    assert ran.seconds < 1


async def test_a_wait_without_text_leaves_the_constant(ask: Path, state: Path) -> None:
    script = answers(b"AW1 wait 9 0 stdout 3\nold", b"AW1 wait 0 2 stderr 0\n")
    async with scripted_daemon(state, script) as daemon:
        constant = await run(ask, *COMMAND)
        nothing = await run(ask, *STOP)

    assert constant.outcome == (0, b"BLOCK", b"")
    assert nothing.outcome == (2, b"", b"")
    assert daemon.seen == [UNPRINTED, UNPRINTED]


async def test_a_print_that_comes_past_the_deadline_is_not_printed(
    ask: Path, state: Path
) -> None:
    """A hook may be stopped by a signal; its time goes on."""

    async def stops_the_hook(connection: Connection) -> bytes:
        await connection.request()
        process.send_signal(signal.SIGSTOP)
        await wait_stopped(process)
        await connection.stream.send_all(HELLO)
        await trio.sleep(0.35)
        process.send_signal(signal.SIGCONT)
        return await connection.rest()

    async with scripted_daemon(state, stops_the_hook) as daemon:
        process = await start(ask, *STOP)
        assert process.stdin is not None
        await process.stdin.send_all(STDIN)
        await process.stdin.aclose()
        printed = await output(process)
        assert await process.wait() == 0

    assert printed == b""
    assert daemon.seen == [UNPRINTED]


# ---- the program -----------------------------------------------------------------


async def test_it_says_which_twin_it_is(ask: Path) -> None:
    ran = await run(ask, "--version")

    assert ran.exit == 0
    assert ran.stdout in (b"ask AW1 c\n", b"ask AW1 python\n")


async def test_the_c_twin_is_short_and_knows_no_json() -> None:
    source = (Path(__file__).parents[2] / "hooks" / "ask.c").read_text()

    assert len(source.splitlines()) < 350
    assert "getenv" not in source
    assert "environ" not in source.replace("environment", "")


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.binary(max_size=600), st.lists(st.sampled_from(GARBAGE)).map(b"".join))
)
def test_no_reply_breaks_the_memory_of_the_c_twin(
    hardened: tuple[Path, Path], reply: bytes
) -> None:
    ask, state = hardened

    async def one() -> None:
        (state / "run" / "bridge.sock").unlink(missing_ok=True)
        async with scripted_daemon(state, hangs_up_after(reply)):
            ran = await run(ask, *STOP)
        assert b"Sanitizer" not in ran.stderr
        assert b"runtime error" not in ran.stderr

    trio.run(one)


@pytest.fixture(scope="module")
def hardened(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The C twin with every check that its compiler can build in."""
    state = tmp_path_factory.mktemp("hardened")
    (state / "bin").mkdir()
    compiled = compile_ask(state / "bin", "-g", "-fsanitize=address,undefined")
    if compiled is None:
        pytest.skip("no C compiler, or one without sanitizers")
    return compiled, state
