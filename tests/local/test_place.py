"""Fault row 34: what cleaners remove of the run folder is put back, and safely."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from bridge.errors import Refused, Unavailable
from bridge.local.connection import Connection
from bridge.local.instance import Instance
from bridge.local.listener import Door
from bridge.local.place import LOOK_EVERY_S, keep_in_place
from bridge.local.stream import LocalListener
from bridge.paths import Paths
from tests.fakes.memory_door import MemoryLog

ASKED, ANSWERED = b"AW1 call 0\n", b"AW1 reply 2\n{}"


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.chdir(tmp_path)  # a claim changes it; this puts it back
    made = Paths(config=tmp_path, state=tmp_path / "s", config_file=tmp_path / "c.json")
    made.prepare()
    return made


class House:
    """A door that is looked after, on a clock that the test moves."""

    def __init__(
        self, paths: Paths, instance: Instance, clock: trio.testing.MockClock
    ) -> None:
        self.log = MemoryLog()
        self.instance = instance
        self._paths = paths
        self._clock = clock

    async def look(self) -> None:
        """The time of the next look comes, and the look."""
        await trio.testing.wait_all_tasks_blocked()
        self._clock.jump(LOOK_EVERY_S)
        await trio.testing.wait_all_tasks_blocked()

    async def knock(self) -> trio.SocketStream:
        """A client that comes by the path; it asks nothing yet."""
        return await trio.open_unix_socket(os.path.relpath(self._paths.socket))

    async def is_answered(self) -> bool:
        """Whether one who comes by the path gets an answer."""
        try:
            client = await self.knock()
        except OSError:
            return False
        async with client:
            return await ask(client) == ANSWERED


async def ask(client: trio.SocketStream) -> bytes:
    await client.send_all(ASKED)
    return bytes(await client.receive_some())


@asynccontextmanager
async def open_house(
    paths: Paths, clock: trio.testing.MockClock
) -> AsyncIterator[House]:
    async def serve(connection: Connection) -> None:
        await connection.send(ANSWERED)
        while await connection.receive_frame(0) is not None:
            await connection.send(ANSWERED)

    with Instance.claim(paths) as instance:
        house = House(paths, instance, clock)
        listener = LocalListener(instance.listen())
        door = Door(serve, own_uid=os.geteuid(), log=house.log)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(door.accept_forever, listener)
            nursery.start_soon(keep_in_place, instance, listener, house.log)
            yield house
            nursery.cancel_scope.cancel()


def remove_socket(paths: Paths) -> None:
    paths.socket.unlink()


def replace_socket_by_a_dead_one(paths: Paths) -> None:
    paths.socket.unlink()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.path.relpath(paths.socket))


def remove_run_folder(paths: Paths) -> None:
    shutil.rmtree(paths.run)


def move_run_folder(paths: Paths) -> None:
    paths.run.rename(paths.state / "moved")


def replace_run_folder(paths: Paths) -> None:
    shutil.rmtree(paths.run)
    paths.run.mkdir(mode=0o700)


def remove_everything_in_it(paths: Paths) -> None:
    paths.socket.unlink()
    paths.lock.unlink()


LOSSES = [
    remove_socket,
    replace_socket_by_a_dead_one,
    remove_run_folder,
    move_run_folder,
    replace_run_folder,
    remove_everything_in_it,
]


@pytest.mark.parametrize("lose", LOSSES)
async def test_a_socket_that_was_removed_is_back_at_the_next_look(
    paths: Paths, mock_clock: trio.testing.MockClock, lose: Callable[[Paths], None]
) -> None:
    async with open_house(paths, mock_clock) as house:
        assert await house.is_answered()
        lose(paths)
        assert not await house.is_answered()

        await house.look()

        assert await house.is_answered()
        assert house.instance.is_in_place()
        assert stat.S_IMODE(paths.socket.lstat().st_mode) == 0o600
        assert stat.S_IMODE(paths.lock.lstat().st_mode) == 0o600
        assert stat.S_IMODE(paths.run.lstat().st_mode) == 0o700
        assert paths.lock.read_text() == f"{os.getpid()}\n"
        assert house.log.events() == ["socket_put_back"]
    assert not paths.socket.exists()


@pytest.mark.parametrize("lose", LOSSES)
async def test_who_is_connected_stays_connected(
    paths: Paths, mock_clock: trio.testing.MockClock, lose: Callable[[Paths], None]
) -> None:
    async with open_house(paths, mock_clock) as house, await house.knock() as client:
        assert await ask(client) == ANSWERED
        lose(paths)
        await house.look()

        assert await ask(client) == ANSWERED


async def test_a_lock_file_that_was_removed_is_back_and_the_socket_stays(
    paths: Paths, mock_clock: trio.testing.MockClock
) -> None:
    async with open_house(paths, mock_clock) as house:
        before = paths.socket.lstat().st_ino
        paths.lock.unlink()

        await house.look()

        assert paths.lock.read_text() == f"{os.getpid()}\n"
        assert paths.socket.lstat().st_ino == before
        assert await house.is_answered()


async def test_looking_changes_nothing_not_even_a_time(
    paths: Paths, mock_clock: trio.testing.MockClock
) -> None:
    async with open_house(paths, mock_clock) as house:
        places = (paths.state, paths.run, paths.socket, paths.lock)
        before = [place.lstat() for place in places]

        for _ in range(20):
            await house.look()

        assert [place.lstat() for place in places] == before
        assert house.log.lines == []


async def test_a_live_socket_of_another_program_is_left_and_said_once(
    paths: Paths, mock_clock: trio.testing.MockClock
) -> None:
    async with open_house(paths, mock_clock) as house:
        paths.socket.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(os.path.relpath(paths.socket))
            other.listen()
            theirs = paths.socket.lstat().st_ino
            for _ in range(3):
                await house.look()

            assert paths.socket.lstat().st_ino == theirs
            assert house.log.events() == ["socket_lost"]
            assert "another live program" in str(house.log.lines[0][1]["reason"])
        await house.look()

        assert await house.is_answered()
        assert house.log.events() == ["socket_lost", "socket_put_back"]


def put_an_open_folder(paths: Paths) -> None:
    paths.run.mkdir()
    paths.run.chmod(0o777)


def put_a_link(paths: Paths) -> None:
    target = paths.state / "elsewhere"
    target.mkdir(mode=0o700)
    paths.run.symlink_to(target)


def put_a_file(paths: Paths) -> None:
    paths.run.write_text("mine")


@pytest.mark.parametrize("put", [put_an_open_folder, put_a_link, put_a_file])
async def test_an_unsafe_folder_in_the_place_is_not_used(
    paths: Paths, mock_clock: trio.testing.MockClock, put: Callable[[Paths], None]
) -> None:
    async with open_house(paths, mock_clock) as house:
        shutil.rmtree(paths.run)
        put(paths)
        before = sorted(path.name for path in paths.state.rglob("*"))

        for _ in range(2):
            await house.look()

        assert house.log.events() == ["socket_lost"]
        assert sorted(path.name for path in paths.state.rglob("*")) == before


def test_a_state_folder_that_is_gone_is_not_made_anew(paths: Paths) -> None:
    with Instance.claim(paths) as instance:
        instance.listen()
        shutil.rmtree(paths.state)

        with pytest.raises(Refused) as caught:
            instance.take_place_again()

        assert caught.value.code == "folder_missing"
        assert not paths.state.exists()


def test_another_state_folder_in_its_place_is_left_to_its_own_bridge(
    paths: Paths, tmp_path: Path
) -> None:
    with Instance.claim(paths) as instance:
        instance.listen()
        paths.state.rename(tmp_path / "moved")
        paths.prepare()

        with pytest.raises(Refused) as caught:
            instance.take_place_again()

        assert caught.value.code == "place_taken"
        assert not list(paths.run.iterdir())
        with Instance.claim(paths) as other, other.listen():
            pass


@pytest.mark.parametrize("lose", LOSSES)
def test_no_second_bridge_comes_in_while_the_lock_file_is_gone(
    paths: Paths, lose: Callable[[Paths], None]
) -> None:
    with Instance.claim(paths) as instance, instance.listen():
        lose(paths)
        paths.prepare()

        for _ in range(2):
            with pytest.raises(Unavailable) as caught:
                Instance.claim(paths)
            assert caught.value.code == "already_running"
            instance.take_place_again()
    Instance.claim(paths).release()
