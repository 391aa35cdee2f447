"""The door over real sockets: other users, other modes, rude and many clients."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
import trio.testing

from bridge.errors import BridgeError, Unavailable
from bridge.local.client import call
from bridge.local.connection import Connection
from bridge.local.instance import Instance
from bridge.local.listener import Door
from bridge.local.replies import HelloReply, decode_answer
from bridge.local.requests import Hello
from bridge.local.stream import LocalListener
from bridge.paths import Paths
from tests.fakes.memory_door import MemoryLog
from tests.faults.capabilities import OTHER_UID, need_other_uid

ROOT = Path(__file__).resolve().parents[2]
DOOR = Path(__file__).with_name("door.py")
DROP = ["setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}", "--clear-groups"]
# What another user does: connect, ask, and say how much came back.
KNOCK = """
import os, socket, sys
os.chdir(sys.argv[1])
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("bridge.sock")
    s.sendall(b'AW1 call 16\\n{"verb":"hello"}')
    print(len(s.recv(100)))
except OSError as error:
    print(type(error).__name__)
"""


class Daemon:
    """A process that runs the door."""

    def __init__(
        self, state: Path, *extra: str, drop: bool = False, umask: int = 0o022
    ) -> None:
        command = [sys.executable, str(DOOR), str(state), *extra]
        self.process = subprocess.Popen(
            [*DROP, *command] if drop else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
            umask=umask,
        )
        self.paths = Paths(config=state, state=state, config_file=state / "config.json")
        assert self.said() == "ready"

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def hello(self) -> HelloReply:
        return decode_answer(call(self.paths, Hello()), HelloReply)


@pytest.fixture
def daemons() -> Iterator[list[Daemon]]:
    started: list[Daemon] = []
    yield started
    for daemon in started:
        daemon.process.kill()
        daemon.process.communicate()


def knock(run: Path, drop: bool) -> str:
    command = [sys.executable, "-IS", "-c", KNOCK, str(run)]
    answer = subprocess.run(
        [*DROP, *command] if drop else command,
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or answer.stderr.strip().splitlines()[-1]


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that other users may pass through, which pytest's own is not."""
    need_other_uid()
    with TemporaryDirectory(prefix="agentworks-test-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


# ---- other users ---------------------------------------------------------------


def test_another_user_is_stopped_by_the_modes(
    reachable: Path, daemons: list[Daemon]
) -> None:
    daemon = Daemon(reachable / "state")
    daemons.append(daemon)

    assert "PermissionError" in knock(daemon.paths.run, drop=True)
    assert daemon.hello().pid == daemon.process.pid


def test_another_user_is_closed_unread_when_the_modes_let_it_in(
    reachable: Path, daemons: list[Daemon]
) -> None:
    daemon = Daemon(reachable / "state")
    daemons.append(daemon)
    daemon.paths.socket.chmod(0o666)
    for folder in (daemon.paths.state, daemon.paths.run):
        folder.chmod(0o711)

    knocked = [knock(daemon.paths.run, drop=True) for _ in range(3)]

    assert set(knocked) <= {"0", "ConnectionResetError", "BrokenPipeError"}
    assert daemon.said() == "peer_rejected other_user"
    daemon.paths.run.chmod(0o700)
    daemon.paths.state.chmod(0o700)
    assert daemon.hello().pid == daemon.process.pid


def test_root_is_another_user(reachable: Path, daemons: list[Daemon]) -> None:
    state = reachable / "state"
    state.mkdir(mode=0o700)
    os.chown(state, OTHER_UID, OTHER_UID)
    daemon = Daemon(state, drop=True)
    daemons.append(daemon)

    assert knock(daemon.paths.run, drop=False) in (
        "0",
        "ConnectionResetError",
        "BrokenPipeError",
    )
    assert daemon.said() == "peer_rejected other_user"


# ---- places ---------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], ids=["000", "022", "077"])
def test_everything_is_private_at_any_umask(
    tmp_path: Path, daemons: list[Daemon], umask: int
) -> None:
    daemon = Daemon(tmp_path / "state", umask=umask)
    daemons.append(daemon)

    modes = {
        path.name: stat.S_IMODE(path.lstat().st_mode)
        for path in (daemon.paths.state, *daemon.paths.state.rglob("*"))
    }

    assert modes.pop("bridge.sock") == 0o600
    assert modes.pop("lock") == 0o600
    assert set(modes.values()) == {0o700}


def test_a_state_path_of_135_bytes_works(tmp_path: Path, daemons: list[Daemon]) -> None:
    fill = 135 - len(os.fsencode(tmp_path)) - 1
    daemon = Daemon(tmp_path / ("x" * max(fill, 1)))
    daemons.append(daemon)

    assert len(os.fsencode(daemon.paths.state)) >= 135
    assert daemon.hello().pid == daemon.process.pid


def test_a_killed_daemon_is_followed_by_another(
    tmp_path: Path, daemons: list[Daemon]
) -> None:
    first = Daemon(tmp_path / "state")
    daemons.append(first)
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    assert first.paths.socket.exists()
    with pytest.raises(Unavailable):
        first.hello()

    second = Daemon(tmp_path / "state")
    daemons.append(second)

    assert second.hello().pid == second.process.pid


# ---- many clients ----------------------------------------------------------------


def connect(paths: Paths) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.connect(os.path.relpath(paths.socket))  # waits for room in the backlog
    client.settimeout(10)
    return client


def test_five_hundred_silent_clients_leave_descriptors_and_manners(
    tmp_path: Path, daemons: list[Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(tmp_path / "state")
    daemons.append(daemon)
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(daemon.paths)) for _ in range(500)]
        refused = [client for client in clients[200:] if client.recv(10)]

        assert len(refused) == 300
        assert len(os.listdir(f"/proc/{daemon.process.pid}/fd")) < 100
    assert daemon.hello().pid == daemon.process.pid


def test_a_want_of_descriptors_is_waited_out(
    tmp_path: Path, daemons: list[Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(tmp_path / "state", "24")
    daemons.append(daemon)
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connect(daemon.paths))
        assert daemon.said() == "accept_paused"

    assert daemon.hello().pid == daemon.process.pid


# ---- rude clients, on a clock that runs fifty times as fast ------------------------


@asynccontextmanager
async def real_door(paths: Paths, reply: bytes = b"") -> AsyncIterator[Door]:
    async def serve(connection: Connection) -> None:
        await connection.receive_body(100)
        await connection.send(reply)

    door = Door(serve, own_uid=os.geteuid(), log=MemoryLog())
    with Instance.claim(paths) as instance:
        listener = LocalListener(instance.listen())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(door.accept_forever, listener)
            yield door
            nursery.cancel_scope.cancel()


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.chdir(tmp_path)
    made = Paths(config=tmp_path, state=tmp_path / "s", config_file=tmp_path / "c.json")
    made.prepare()
    return made


async def knocked() -> trio.SocketStream:
    return await trio.open_unix_socket("bridge.sock")


async def read_to_the_end(client: trio.SocketStream) -> bytes:
    """All that came; closing with something unread resets after the answer."""
    received = b""
    with suppress(trio.BrokenResourceError):
        async for chunk in client:
            received += bytes(chunk)
    return received


@pytest.mark.parametrize("words", [b"", b"AW1 call 5\nhal", b"AW1 hook claude Sto"])
async def test_a_slow_client_is_closed_and_others_are_served(
    paths: Paths, mock_clock: trio.testing.MockClock, words: bytes
) -> None:
    async with real_door(paths, b"AW1 reply 2\n{}") as door:
        async with await knocked() as slow, await knocked() as quick:
            await slow.send_all(words)
            await quick.send_all(b"AW1 call 0\n")
            assert await quick.receive_some() == b"AW1 reply 2\n{}"

            mock_clock.rate = 50
            received = await read_to_the_end(slow)

        assert b"took too long" in received or words.startswith(b"AW1 hook")
        assert "unheard" not in door.inside()


async def test_a_client_that_never_reads_is_given_up(
    paths: Paths, mock_clock: trio.testing.MockClock
) -> None:
    async with real_door(paths, b"x" * 8_000_000) as door, await knocked() as deaf:
        await deaf.send_all(b"AW1 call 0\n")
        while door.inside() != {"short": 1}:
            await trio.lowlevel.checkpoint()

        mock_clock.rate = 50
        with trio.fail_after(60):
            while door.inside():
                await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0" * 4096,
        b"AW1 call 4294967296\n",
        b"AW1 call -1\n{}",
        b"\x16\x03\x01\x02\x00",
    ],
)
async def test_garbage_is_answered_and_closed(paths: Paths, words: bytes) -> None:
    async with real_door(paths), await knocked() as client:
        await client.send_all(words)
        if b"\n" not in words and len(words) < 256:
            await client.send_eof()

        assert (await read_to_the_end(client)).startswith(b"AW1 reply ")


async def test_a_client_gone_before_its_answer_is_no_trouble(paths: Paths) -> None:
    async with real_door(paths, b"x" * 1_000_000) as door:
        for _ in range(5):
            async with await knocked() as client:
                await client.send_all(b"AW1 call 0\n")
        async with await knocked() as last:
            await last.send_all(b"AW1 call 0\n")
            assert await last.receive_some(10) == b"x" * 10
        assert set(door.inside()) <= {"short"}


def test_a_command_is_refused_and_not_hung_by_a_full_house(
    tmp_path: Path, daemons: list[Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(tmp_path / "state")
    daemons.append(daemon)
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        for _ in range(64):
            client = stack.enter_context(connect(daemon.paths))
            client.sendall(b'AW1 call 16\n{"verb":"hello"}')
            assert client.recv(10)

        with pytest.raises(BridgeError) as caught:
            daemon.hello()

        assert caught.value.code == "busy"
