"""A command asks the daemon: safely, within its deadline, and honestly."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bridge.errors import EXIT_UNREACHABLE, Invalid, Refused, Unavailable, Unknown
from bridge.local.client import call
from bridge.local.requests import Detach, Hello, MessagesSend
from bridge.paths import Paths
from tests.fakes.answering import Answer, answering, read_call, reply
from tests.faults.capabilities import need_root


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.delenv("CODEX_SANDBOX_NETWORK_DISABLED", raising=False)
    made = Paths(config=tmp_path, state=tmp_path / "s", config_file=tmp_path / "c.json")
    made.prepare()
    return made


def test_an_answer_is_the_text_of_ok(paths: Paths) -> None:
    with answering(paths.run, reply(b'{"ok":{"pid": 7}}')):
        assert call(paths, Hello()) == b'{"pid": 7}'


def test_the_request_is_one_call_frame(paths: Paths) -> None:
    seen = []

    def answer(client: socket.socket) -> None:
        seen.append(read_call(client))
        client.sendall(b'AW1 reply 9\n{"ok":[]}')

    with answering(paths.run, answer):
        call(paths, Detach(name="bob"))

    assert seen == [b'{"verb":"detach","name":"bob"}']


def test_a_refusal_is_raised_as_it_was_meant(paths: Paths) -> None:
    body = b'{"error":{"code":"name_held","message":"Held.","hint":"Wait.","exit":4}}'
    with answering(paths.run, reply(body)), pytest.raises(Refused) as caught:
        call(paths, Detach(name="bob"))

    assert (caught.value.code, caught.value.exit_code) == ("name_held", 4)


def test_the_callers_folder_is_as_it_was(paths: Paths) -> None:
    before = Path.cwd()
    with answering(paths.run, reply(b'{"ok":[]}')):
        call(paths, Hello())

    assert Path.cwd() == before


def test_a_caller_whose_folder_was_removed_can_ask(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    with answering(paths.run, reply(b'{"ok":[]}')):
        gone.rmdir()
        assert call(paths, Hello()) == b"[]"


def test_a_state_path_of_any_length_works(tmp_path: Path) -> None:
    state = tmp_path / ("long-" * 40)
    paths = Paths(config=tmp_path, state=state, config_file=tmp_path / "c.json")
    paths.prepare()

    with answering(paths.run, reply(b'{"ok":[]}')):
        assert call(paths, Hello()) == b"[]"


# ---- nobody there -----------------------------------------------------------


def test_no_socket_is_a_bridge_that_is_not_running(paths: Paths) -> None:
    with pytest.raises(Unavailable) as caught:
        call(paths, Hello())

    assert caught.value.code == "bridge_not_running"
    assert caught.value.exit_code == EXIT_UNREACHABLE
    assert "agentworks up" in caught.value.sentence()


def test_no_state_folder_is_a_bridge_that_is_not_running(tmp_path: Path) -> None:
    paths = Paths(config=tmp_path, state=tmp_path / "s", config_file=tmp_path / "c")

    with pytest.raises(Unavailable, match="not running"):
        call(paths, Hello())

    assert os.listdir(tmp_path) == []


def test_a_dead_socket_is_a_bridge_that_is_not_running(paths: Paths) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.path.relpath(paths.socket))

    with pytest.raises(Unavailable, match="not running"):
        call(paths, Hello())


def test_a_full_backlog_is_a_busy_bridge(paths: Paths) -> None:
    with socket.socket(socket.AF_UNIX) as stopped, socket.socket(socket.AF_UNIX) as one:
        stopped.bind(os.path.relpath(paths.socket))
        stopped.listen(0)
        one.connect(os.path.relpath(paths.socket))

        with pytest.raises(Unavailable) as caught:
            call(paths, Hello())

    assert caught.value.code == "bridge_busy"


# ---- a sandbox ----------------------------------------------------------------


def test_below_a_sandbox_a_missing_socket_says_nothing_about_the_bridge(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_SANDBOX_NETWORK_DISABLED", "1")

    with pytest.raises(Refused) as caught:
        call(paths, Hello())

    assert caught.value.code == "sandboxed"
    assert caught.value.exit_code == EXIT_UNREACHABLE
    assert "agent_message tools" in caught.value.sentence()
    assert "not running" not in caught.value.sentence()


def test_a_forbidden_connect_is_a_sandbox(paths: Paths) -> None:
    """A seccomp filter that answers connect with EPERM, as Codex' sandbox does."""
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run(
        [sys.executable, Path(__file__).with_name("forbidden_connect.py"), paths.state],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(root), "PATH": os.environ["PATH"]},
        check=False,
    )
    if answer.returncode == 77:
        pytest.skip("no seccomp filter may be set here")

    assert answer.stdout.strip() == "sandboxed", answer.stderr


# ---- somebody else there --------------------------------------------------------


def test_a_daemon_of_another_user_is_not_asked(paths: Paths) -> None:
    need_root()
    program = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); "
        "s.bind('bridge.sock'); os.chmod('bridge.sock', 0o777); os.setuid(65534); "
        "s.listen(); print('ready', flush=True); c, _ = s.accept(); "
        "print(len(c.recv(1)), flush=True)"
    )
    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", program],
        cwd=paths.run,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    with pytest.raises(Refused, match="uid 65534"):
        call(paths, Hello())

    received, _ = process.communicate()
    assert received == "0\n"


def test_an_unsafe_run_folder_is_not_entered(paths: Paths) -> None:
    paths.run.chmod(0o777)

    with pytest.raises(Refused, match="0777"):
        call(paths, Hello())


@pytest.mark.parametrize(
    "words",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"AW1 print 0 stdout 0\n",
        b"AW1 reply 99999999\n",
        b"AW1 reply 2\n{}",
        b"AW1 reply 4\n\xff\xff\xff\xff",
        b"x" * 300,
    ],
)
def test_another_program_at_our_socket_is_not_believed(
    paths: Paths, words: bytes
) -> None:
    def answer(client: socket.socket) -> None:
        read_call(client)
        client.sendall(words)

    with answering(paths.run, answer), pytest.raises(Invalid):
        call(paths, Hello())


# ---- deadlines ------------------------------------------------------------------


def leave(client: socket.socket) -> None:
    read_call(client)


def leave_unread(client: socket.socket) -> None:
    return


def leave_in_the_middle(client: socket.socket) -> None:
    read_call(client)
    client.sendall(b'AW1 reply 50\n{"ok":')


@pytest.mark.parametrize("answer", [leave, leave_unread, leave_in_the_middle])
def test_a_daemon_that_leaves_makes_a_change_unknown_and_a_read_unavailable(
    paths: Paths, answer: Answer
) -> None:
    with answering(paths.run, answer):
        with pytest.raises(Unknown, match="may or may not"):
            call(paths, Detach(name="bob"))
        with pytest.raises(Unavailable):
            call(paths, Hello())


def test_a_daemon_that_says_nothing_is_left_at_the_deadline(paths: Paths) -> None:
    done = threading.Event()

    def drip(client: socket.socket) -> None:
        read_call(client)
        while not done.wait(0.02):
            client.sendall(b"A")  # a byte now and then buys no time

    with answering(paths.run, drip):
        with pytest.raises(Unknown, match="in time"):
            call(paths, Detach(name="bob"), answer_s=0.2)
        done.set()


def test_a_daemon_that_does_not_read_is_left_at_the_deadline(paths: Paths) -> None:
    done = threading.Event()

    def ignore(client: socket.socket) -> None:
        done.wait(30)

    request = MessagesSend(message="x" * 190_000, target="agent:bob")
    with answering(paths.run, ignore):
        with pytest.raises(Unknown, match="in time"):
            call(paths, request, answer_s=0.1)
        done.set()


def test_a_refusal_before_the_request_was_read_is_heard(paths: Paths) -> None:
    body = b'{"error":{"code":"busy","message":"Busy.","hint":"Wait.","exit":75}}'

    def refuse(client: socket.socket) -> None:
        client.sendall(b"AW1 reply %d\n%b" % (len(body), body))

    request = MessagesSend(message="x" * 190_000, target="agent:bob")
    with answering(paths.run, refuse), pytest.raises(Unavailable, match="Busy"):
        call(paths, request)
