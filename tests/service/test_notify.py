"""What is said to a service manager, and to nobody else."""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from bridge.service.notify import Notifier
from tests.fakes.descriptors import no_descriptor


@pytest.fixture(params=["file", "abstract"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """An address of each kind."""
    if request.param == "abstract":
        yield f"@agentworks-test-{secrets.token_hex(8)}"
        return
    with tempfile.TemporaryDirectory(prefix="aw-") as folder:
        yield str(Path(folder) / "notify")


def listening(place: str) -> socket.socket:
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(f"\0{place[1:]}" if place.startswith("@") else place)
    manager.setblocking(False)
    return manager


async def test_all_lines_of_a_word_come_in_one_datagram(place: str) -> None:
    with listening(place) as manager:
        await Notifier(place).say("READY=1", "STATUS=Serving.")

        assert manager.recv(4096) == b"READY=1\nSTATUS=Serving."
        with pytest.raises(BlockingIOError):
            manager.recv(4096)


async def test_a_manager_that_is_gone_is_not_missed(place: str) -> None:
    await Notifier(place).say("READY=1")


async def test_a_want_of_descriptors_ends_no_bridge(
    place: str, autojump_clock: trio.testing.MockClock
) -> None:
    with listening(place) as manager:
        with no_descriptor():
            await Notifier(place).say("WATCHDOG=1")

        with pytest.raises(BlockingIOError):
            manager.recv(4096)


async def test_a_word_that_had_no_descriptor_is_said_when_there_is_one(
    place: str, mock_clock: trio.testing.MockClock
) -> None:
    with listening(place) as manager:
        async with trio.open_nursery() as nursery:
            with no_descriptor():
                nursery.start_soon(Notifier(place).say, "READY=1")
                await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(1)

        assert manager.recv(4096) == b"READY=1"


async def test_a_manager_that_reads_nothing_holds_nobody_up(
    place: str, autojump_clock: trio.testing.MockClock
) -> None:
    with listening(place), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        other.connect(f"\0{place[1:]}" if place.startswith("@") else place)
        with suppress(BlockingIOError):
            while True:
                other.send(b"full")

        with trio.fail_after(5):
            await Notifier(place).say("WATCHDOG=1")


async def test_a_word_that_found_no_room_is_said_again(place: str) -> None:
    with listening(place) as manager:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            other.connect(f"\0{place[1:]}" if place.startswith("@") else place)
            with suppress(BlockingIOError):
                while True:
                    other.send(b"full")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Notifier(place).say, "READY=1")
            await trio.testing.wait_all_tasks_blocked()
            with suppress(BlockingIOError):
                while manager.recv(4096) == b"full":
                    pass

        assert manager.recv(4096) == b"READY=1"


async def test_nothing_is_said_where_nobody_asked() -> None:
    await Notifier().say("READY=1")
    await Notifier.take({}).say("READY=1")


# ---- what the environment says ------------------------------------------------------


def test_what_is_for_us_alone_is_taken_out_of_the_environment() -> None:
    environment = {
        "NOTIFY_SOCKET": "/run/x",
        "WATCHDOG_USEC": "60000000",
        "WATCHDOG_PID": str(os.getpid()),
        "PATH": "/bin",
    }

    notifier = Notifier.take(environment)

    assert notifier.watchdog_s == 60.0
    assert environment == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "said",
    [
        {"WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "-60000000"},
        {"WATCHDOG_USEC": ""},
        {"NOTIFY_SOCKET": ""},
        {"NOTIFY_SOCKET": "vsock:2:1"},
        {"NOTIFY_SOCKET": "relative"},
    ],
)
def test_a_watchdog_of_another_process_or_without_sense_is_not_fed(
    said: dict[str, str],
) -> None:
    environment = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "60000000", **said}

    assert Notifier.take(environment).watchdog_s == 0.0
    assert environment == {}
