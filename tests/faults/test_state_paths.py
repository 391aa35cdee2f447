"""Fault rows 28 and 30: wherever the state folder is, a message goes all the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.journeys.rig.computer import Computer, computer_in

pytestmark = pytest.mark.slow


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose own path takes little of the length."""
    with TemporaryDirectory(prefix="aw-") as folder:
        yield Path(folder)


async def a_message_goes_round(computer: Computer) -> None:
    daemon = await computer.start_bridge()
    alice, bob = await computer.settled("alice"), await computer.settled("bob")
    await alice.send("bob", "from far away")

    assert "from far away" in await bob.mail()
    assert await daemon.stop() == 0


@pytest.mark.parametrize("length", [103, 104, 107, 108, 135])
async def test_a_socket_whose_path_has_this_many_bytes_works(
    short: Path, built_ask: Path, length: int
) -> None:
    """Systems allow 104 or 108 bytes of a path in the call itself."""
    tail = len("//state/run/bridge.sock")
    folder = short / ("x" * (length - len(os.fsencode(short)) - tail))
    folder.mkdir()
    async with computer_in(folder, built_ask) as computer:
        # One separator less than the tail says: the folder's own name begins there.
        assert len(os.fsencode(computer.paths.socket)) == length
        await a_message_goes_round(computer)


def missing(folder: Path) -> str:
    return str(folder / "missing")


def relative(folder: Path) -> str:
    return "run"


def open_to_all(folder: Path) -> str:
    place = folder / "open"
    place.mkdir()
    place.chmod(0o777)
    return str(place)


def not_set(folder: Path) -> str:
    return ""


@pytest.mark.parametrize("place", [missing, relative, open_to_all, not_set])
async def test_the_runtime_folder_of_the_system_is_neither_needed_nor_used(
    computer: Computer, short: Path, place: object
) -> None:
    assert callable(place)
    computer.environment["XDG_RUNTIME_DIR"] = place(short)

    await a_message_goes_round(computer)

    assert [path for path in short.rglob("*") if path.name != "open"] == []
