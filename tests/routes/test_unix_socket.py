"""Another program's socket: every place that is not used, and why."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from bridge.errors import BridgeError, Refused, Unavailable
from bridge.peer import Peer
from bridge.routes.unix_socket import PATH_LIMIT_BYTES, connect, vetted

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


class Program:
    """A program that listens in a folder of its own; it accepts nothing by itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "socks"
        self.folder.mkdir(mode=0o700)
        self.path = self.folder / "1.sock"
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.path))
        self.socket.listen(1)
        self.socket.setblocking(False)

    def has_heard(self) -> bytes | None:
        """What the first connection brought; None where there was none."""
        try:
            accepted, _ = self.socket.accept()
        except BlockingIOError:
            return None
        with accepted:
            return accepted.recv(100)


@pytest.fixture
def program(short_folder: Path) -> Iterator[Program]:
    program = Program(short_folder)
    yield program
    program.socket.close()


def is_us(peer: Peer) -> bool:
    return peer == Peer(os.geteuid(), os.getpid())


async def refused(path: str | Path, kind: type[BridgeError] = Refused) -> str:
    """The reason for which this place is not connected to."""
    with pytest.raises(kind) as caught:
        await connect(str(path), is_us)
    return caught.value.message


async def test_a_socket_of_ours_in_a_folder_of_ours_is_used(program: Program) -> None:
    stream = await connect(str(program.path), is_us)
    await stream.send_all(b"hello")
    await stream.aclose()

    assert program.has_heard() == b"hello"


async def test_a_link_is_followed_and_what_it_leads_to_is_vetted(
    program: Program,
) -> None:
    link = program.folder.parent / "link.sock"
    link.symlink_to(program.path)
    assert vetted(str(link)) == os.path.realpath(program.path)

    program.folder.chmod(0o770)
    assert "others may change the folder" in await refused(link)
    assert program.has_heard() is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
async def test_a_folder_that_others_may_change_is_not_used(
    program: Program, mode: int
) -> None:
    program.folder.chmod(mode)

    assert "others may change the folder" in await refused(program.path)
    assert program.has_heard() is None


@needs_root
async def test_what_belongs_to_another_user_is_not_used(program: Program) -> None:
    os.chown(program.path, NOBODY, NOBODY)
    assert "no socket of yours" in await refused(program.path)

    os.chown(program.path, 0, 0)
    os.chown(program.folder, NOBODY, NOBODY)
    assert "others may change the folder" in await refused(program.path)
    assert program.has_heard() is None


async def test_what_is_no_socket_is_not_used(program: Program) -> None:
    file = program.folder / "file.sock"
    file.write_bytes(b"")
    fifo = program.folder / "fifo.sock"
    os.mkfifo(fifo)

    for place in (file, fifo, program.folder):
        assert "no socket of yours" in await refused(place)


@pytest.mark.parametrize("path", ["", "relative.sock", "@abstract", "/nul\0.sock"])
async def test_a_path_that_is_not_absolute_is_not_used(path: str) -> None:
    assert "not absolute" in await refused(path)


async def test_a_path_that_no_system_takes_is_not_used(program: Program) -> None:
    deep = program.folder / ("x" * PATH_LIMIT_BYTES)
    deep.mkdir(mode=0o700)
    os.link(program.path, deep / "1.sock")

    assert "longer than 103 bytes" in await refused(deep / "1.sock")


async def test_another_program_at_the_socket_is_written_nothing(
    program: Program,
) -> None:
    with pytest.raises(Refused, match="another program listens there"):
        await connect(str(program.path), lambda peer: peer.pid == os.getpid() + 1)

    assert program.has_heard() == b""


async def test_a_place_without_a_program_does_not_answer(program: Program) -> None:
    program.socket.close()
    assert "does not answer" in await refused(program.path, Unavailable)

    program.path.unlink()
    assert "does not answer" in await refused(program.path, Unavailable)


async def test_a_program_that_accepts_nobody_is_not_waited_for(
    program: Program,
) -> None:
    async def connect_until_full() -> None:
        for _ in range(10):
            waiting.append(await connect(str(program.path), is_us))

    waiting: list[trio.SocketStream] = []
    with pytest.raises(Unavailable, match="takes no connection now"):
        await connect_until_full()

    assert waiting
    for stream in waiting:
        await stream.aclose()
