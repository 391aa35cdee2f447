"""Fault row 34 with the real daemon: what cleaners remove is back within seconds."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from bridge.paths import Paths
from tests.journeys.rig.computer import Computer
from tests.journeys.rig.puppets import Denied
from tests.journeys.rig.waiting import until_some


def remove_run_folder(paths: Paths) -> None:
    shutil.rmtree(paths.run)


def remove_sockets(paths: Paths) -> None:
    """As cleaners of temporary files do, which keep folders and plain files."""
    for socket in paths.run.glob("*.sock"):
        socket.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("lose", [remove_run_folder, remove_sockets])
async def test_a_bridge_whose_sockets_were_removed_is_reached_again(
    computer: Computer, lose: Callable[[Paths], None]
) -> None:
    daemon = await computer.start_bridge()
    alice, bob = await computer.settled("alice"), await computer.settled("bob")
    await alice.send("bob", "before the cleaner came")
    await computer.until_row("bob", pending=1)

    lose(computer.paths)
    assert await bob.stop() == ""  # a hook that asks in between says nothing
    with pytest.raises(Denied) as denied:
        await computer.person("hello")
    await daemon.until(computer.answers, "an answer after the loss")

    assert denied.value.code == "bridge_not_running"
    assert (await computer.person("hello"))["pid"] == daemon.pid
    assert "before the cleaner came" in await bob.mail()

    async def is_accepted() -> bool:
        said = await alice.send("bob", "after it", "after-1")
        return bool(said["status"] == "accepted")

    await until_some(is_accepted, "the embedded server at its new socket")
    assert (await bob.mail()).count("after it") == 1
    assert await daemon.stop() == 0
    assert not list(computer.paths.run.glob("*.sock"))
