"""The daemon killed at every write to its journal, and everything still true.

Fault row 1. CRASH_EVERY=N takes every N-th point (5 unless said otherwise).
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
import trio

from tests.faults.capabilities import need_strace
from tests.faults.lives import LIMITS, Crew, Lives, Point, crew_in
from tests.faults.story import Story
from tests.journeys.rig.computer import computer_in
from tests.journeys.rig.puppets import Denied
from tests.journeys.rig.running import Running

# sendto: the commit is on the disk, and nobody knows it yet.
CALLS = ("pwrite64", "fdatasync", "ftruncate", "unlink", "sendto")
EVERY = int(os.environ.get("CRASH_EVERY", "5"))
Part = Callable[[], Awaitable[object]]
GONE = ("bridge_not_running", "bridge_silent")
KILLED = -9
_LOG_SHOWN = 4000

_stories = count()


class Sweep:
    """The points of one call, taken by several crews until a story survives."""

    def __init__(self, call: str, folder: Path, ask: Path) -> None:
        self.killed = 0
        self._call = call
        self._folder = folder
        self._ask = ask
        self._numbers: Iterator[int] = count(1, EVERY)
        self._is_over = False

    async def run(self, crew: Crew) -> None:
        """One point after the other."""
        while not self._is_over:
            point = Point(self._call, next(self._numbers))
            if await self._survives(point, crew):
                self._is_over = True
            else:
                self.killed += 1

    async def _survives(self, point: Point, crew: Crew) -> bool:
        folder = self._folder / f"{point.call}-{point.number}"
        folder.mkdir()
        lives = Lives(crew, folder, self._ask)
        try:
            is_alive = await story_with(point, lives, folder)
        except BaseException as error:
            error.add_note(f"at {point}, in {folder}")
            error.add_note(lives.said[-_LOG_SHOWN:])
            raise
        shutil.rmtree(folder)
        return is_alive


async def story_with(point: Point, lives: Lives, folder: Path) -> bool:
    """A whole story with one death in it; True when it ended without."""
    story = Story(lives, next(_stories))
    code = await live_until(point, lives, story.play)
    assert code in (0, KILLED)
    before = story.inspect(folder / "after-death")
    await lives.begin()
    try:
        await lives.until_serving()
        await story.finish()
    finally:
        await lives.kill()
    after = story.inspect(folder / "at-the-end")
    for name, watermark in before.items():
        assert after.get(name, watermark) >= watermark
    return code == 0


async def live_until(point: Point, lives: Lives, part: Part) -> int:
    """A part of a story with a daemon that dies at the point; its exit code."""
    async with trio.open_nursery() as nursery:
        tracer = await lives.begin_doomed(point)
        nursery.start_soon(play, lives, part)
        code = await lives.end()
        nursery.cancel_scope.cancel()
    await tracer.wait()
    return code


async def play(lives: Lives, part: Part) -> None:
    """The part, as far as it comes."""
    try:
        await lives.until_serving()
        await part()
    except BaseException as error:
        if not (isinstance(error, Denied) and error.code in GONE):
            lives.strike()  # else it would live on and be waited for
            raise


@contextmanager
def _blaming(server: Running) -> Iterator[None]:
    """The server may never die: show its last words too."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"server, {server.ended}: {server.said[-_LOG_SHOWN:]}")
        raise


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: a kill needs no disk to be true."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="kill-points-") as made:
        yield Path(made)


@pytest.mark.crash
@pytest.mark.timeout(3600)
async def test_killed_at_any_write_nothing_is_lost_and_nothing_repeated(
    folder: Path, built_ask: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_strace()
    faulthandler.cancel_dump_traceback_later()  # minutes are no sign of a hang here
    begun = trio.current_time()
    ask = Path(shutil.copy2(built_ask, folder / "ask"))
    points = {}
    async with computer_in(folder, ask) as main:
        server = await main.start_server(**LIMITS)
        async with crew_in(main) as first, crew_in(main) as second:
            for call in CALLS:
                sweep = Sweep(call, folder, ask)
                with _blaming(server):
                    async with trio.open_nursery() as nursery:
                        for crew in (first, second):
                            nursery.start_soon(sweep.run, crew)
                points[call] = sweep.killed
    took = trio.current_time() - begun
    with capsys.disabled():
        of = f"1 of {EVERY}" if EVERY > 1 else "all"
        total = sum(points.values())
        sys.stdout.write(f"\nkilled at {total} points ({of}), {took:.0f} s: {points}\n")
    assert all(points.values()), points
