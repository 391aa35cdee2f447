"""The computer's clock is set while a real bridge runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.capabilities import need_program
from tests.journeys.rig.computer import Computer

GUIDANCE = "Replies are optional"
DAY_S = 24 * 3600


class SetClock:
    """The wall clock of programs that are started with `variables`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    @property
    def variables(self) -> dict[str, str]:
        found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
        return {
            "LD_PRELOAD": str(found[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            # Else it sets the clocks too that no person can set.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, offset_s: int) -> None:
        """From now on the clock is wrong by this much; whole for every reader."""
        new = self._file.with_name("new")
        new.write_text(f"{offset_s:+d}s\n")
        new.rename(self._file)


@pytest.mark.crash
async def test_mail_comes_once_and_in_order_whatever_day_the_clock_shows(
    computer: Computer, tmp_path: Path
) -> None:
    """The server keeps its own time: only the bridge's computer is wrong."""
    need_program("faketime")
    clock = SetClock(tmp_path / "offset")
    await computer.start_server()
    true_environment = dict(computer.environment)
    computer.environment.update(clock.variables)
    bridge = await computer.start_bridge_alone()
    computer.environment.clear()
    computer.environment.update(true_environment)
    alice, bob = await computer.settled("alice"), await computer.settled("bob")

    shown: list[str] = []
    texts: list[str] = []
    for offset in (0, -DAY_S, 3650 * DAY_S, 0):
        clock.set(offset)
        guided = 0
        for turn in (1, 2):
            text = f"clock off by {offset}, {len(texts)}, turn {turn}"
            sent = await alice.send("bob", text)
            assert sent["status"] in ("accepted", "queued")
            texts.append(text)
            shown.append(await bob.mail())
            guided += GUIDANCE in shown[-1]
        assert guided <= 1, offset

    assert [sum(text in one for one in shown) for text in texts] == [1] * len(texts)
    assert all(text in one for text, one in zip(texts, shown, strict=True))
    await computer.until_row("bob", state="attached", unacknowledged=len(texts))
    assert await bridge.stop() == 0
