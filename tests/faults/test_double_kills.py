"""A daemon that is killed while it recovers from having been killed."""

from __future__ import annotations

import faulthandler
import shutil
from itertools import count
from pathlib import Path

import pytest

from tests.faults.capabilities import need_strace
from tests.faults.lives import LIMITS, Lives, Point, crew_in
from tests.faults.power_loss import Chance
from tests.faults.story import Story
from tests.faults.test_kill_points import EVERY, KILLED, folder, live_until
from tests.journeys.rig.computer import computer_in

__all__ = ["folder"]

SEED = 20
PAIRS = 60 // EVERY
_SAID = 4000
# How often the first life makes each call at most, roughly: past it nobody dies.
FIRST = {"pwrite64": 150, "fdatasync": 50, "ftruncate": 6, "unlink": 4, "sendto": 60}
# A recovery is short.
SECOND = {"pwrite64": 30, "fdatasync": 12, "ftruncate": 2, "unlink": 2, "sendto": 20}


def chosen(chance: Chance, most: dict[str, int]) -> Point:
    """Any call as likely as any other, at any of its times."""
    call = chance.choice(sorted(most))
    return Point(call, chance.randint(1, most[call]))


async def story_with_two(points: tuple[Point, Point], lives: Lives, at: Path) -> bool:
    """A whole story with two deaths in it; True when both happened."""
    story = Story(lives, int(at.name))
    codes = [await live_until(points[0], lives, story.play)]
    first = story.inspect(at / "after-first")

    async def recover() -> None:
        await story.finish()
        await lives.computer.person("stop")

    codes.append(await live_until(points[1], lives, recover))
    second = story.inspect(at / "after-second")
    await lives.begin()
    try:
        await lives.until_serving()
        await story.finish()
    finally:
        await lives.kill()
    last = story.inspect(at / "at-the-end")
    for earlier, later in ((first, second), (second, last)):
        for name, watermark in earlier.items():
            assert later.get(name, watermark) >= watermark
    assert set(codes) <= {0, KILLED}
    return codes == [KILLED, KILLED]


@pytest.mark.crash
@pytest.mark.timeout(1800)
async def test_killed_again_while_recovering_nothing_is_lost_and_nothing_repeated(
    folder: Path, built_ask: Path
) -> None:
    need_strace()
    faulthandler.cancel_dump_traceback_later()  # a minute is no sign of a hang here
    chance, both = Chance(SEED), 0
    ask = Path(shutil.copy2(built_ask, folder / "ask"))
    async with computer_in(folder, ask) as main:
        await main.start_server(**LIMITS)
        async with crew_in(main) as crew:
            for number in count():
                if both == PAIRS:
                    break
                points = chosen(chance, FIRST), chosen(chance, SECOND)
                at = folder / str(number)
                at.mkdir()
                lives = Lives(crew, at, ask)
                try:
                    both += await story_with_two(points, lives, at)
                except BaseException as error:
                    error.add_note(f"at {points}, number {number}")
                    error.add_note(lives.said[-_SAID:])
                    raise
                shutil.rmtree(at)
    assert number < PAIRS * 4
