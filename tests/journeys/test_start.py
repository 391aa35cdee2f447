"""A start that must not happen: what is said, and what is left as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.rig.computer import Computer


async def test_a_second_daemon_ends_with_75_and_names_the_first(
    computer: Computer,
) -> None:
    first = await computer.start_bridge()

    second = await computer.launch_bridge()

    assert await second.end() == 75
    assert f"(pid {first.pid})" in second.said
    assert (await computer.person("hello"))["pid"] == first.pid


async def test_a_corrupt_journal_is_kept_and_the_start_refused(
    computer: Computer,
) -> None:
    daemon = await computer.start_bridge()
    await computer.settled("bob")
    await computer.person("stop")
    await daemon.end()
    content = computer.paths.journal.read_bytes()
    damaged = content[:4096] + b"\xff" * 4096 + content[8192:]
    computer.paths.journal.write_bytes(damaged)

    refused = await computer.launch_bridge()

    assert await refused.end() == 78
    assert "is damaged; it was left as it is" in refused.said
    assert "would lose" in refused.said
    assert "Traceback" not in refused.said
    assert computer.paths.journal.read_bytes() == damaged


@pytest.mark.parametrize("mode", [0o770, 0o705])
async def test_a_state_folder_that_others_may_enter_is_refused_with_the_fix(
    computer: Computer, mode: int
) -> None:
    computer.paths.bin.mkdir(mode=0o700, parents=True)
    computer.state.chmod(mode)

    refused = await computer.launch_bridge()

    assert await refused.end() == 78
    assert f"chmod 700 {computer.state}" in refused.said
    assert "Traceback" not in refused.said
    assert sorted(path.name for path in computer.state.iterdir()) == ["bin"]


async def test_a_state_folder_behind_a_link_is_refused(
    computer: Computer, tmp_path: Path
) -> None:
    real = tmp_path / "elsewhere"
    (real / "bin").mkdir(mode=0o700, parents=True)
    real.chmod(0o700)
    computer.state.symlink_to(real)

    refused = await computer.launch_bridge()

    assert await refused.end() == 78
    assert "link" in refused.said
    assert "Traceback" not in refused.said
    assert sorted(path.name for path in real.iterdir()) == ["bin"]


@pytest.mark.parametrize("server", ["https://server.example", "unix:///nowhere.sock"])
async def test_a_server_without_a_login_is_refused_in_one_sentence(
    computer: Computer, server: str
) -> None:
    refused = await computer.launch_bridge(server)

    assert await refused.end() == 78
    assert "so the bridge" in refused.said
    assert "Traceback" not in refused.said
