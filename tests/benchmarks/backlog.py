"""What a long backlog costs: receiving it, and starting with it.

Owns attached scripts whose mail waits at the server while the bridge is down.
"""

from __future__ import annotations

import time
from pathlib import Path

import trio
from msgspec import Struct

from bridge.cli.demo_stage import NotSo
from tests.benchmarks.curves import GROWS, name_of, open_crowd
from tests.benchmarks.journal import PAGE, bare_seconds, journal_rate
from tests.benchmarks.table import Row, median
from tests.benchmarks.workshop import Workshop

SHORT, LONG = 500, 2_000
STARTS = 3
RECEIVED_SHARE = 0.5
START_S = 1.5
# So long that LONG of them fill what one attachment may hold, 31 MiB of 32.
FULL_CHARACTERS = 16_000
_PATIENCE_S = 120.0
_LOOK_S = 0.01


class Backlog(Struct, frozen=True):
    """A backlog that was received: seconds from its first row to its last."""

    count: int
    took_s: float
    bare_s: float
    start_s: float


async def backlog_rows(folder: Path) -> list[Row]:
    """Catch-up and start, against less of it and against SQLite alone."""
    folder.mkdir(mode=0o700)
    empty = await _empty_start(folder / "empty")
    short = await _caught(folder / "short", SHORT)
    long = await _caught(folder / "long", LONG)
    full = await _caught(folder / "full", LONG, FULL_CHARACTERS)
    kept = await journal_rate(folder / "journal")
    each = long.took_s / long.count / (short.took_s / short.count)
    rates = ", ".join(
        f"{one.count / one.took_s:.0f}/s of {one.count}" for one in (short, long)
    )
    starts = (
        f"empty {empty:.2f} s, {LONG} messages {long.start_s:.2f} s,"
        f" 31 MiB {full.start_s:.2f} s"
    )
    return [
        Row(f"each of {LONG} received against {SHORT}", each, "x", GROWS, rates),
        Row(
            "  the same against SQLite alone",
            long.took_s / long.bare_s,
            "x",
            beside="HTTP, events and JSON included",
        ),
        Row(
            "messages into the journal against SQLite alone",
            kept.bare / kept.journal,
            "x slower",
            1 / RECEIVED_SHARE,
            f"{kept.journal:.0f}/s and {kept.bare:.0f}/s, {PAGE} in a commit",
        ),
        Row("start with a full journal", full.start_s, "s", START_S, starts),
    ]


async def _empty_start(folder: Path) -> float:
    async with open_crowd(folder) as many:
        return await _start_s(many.shop)


async def _caught(folder: Path, count: int, characters: int = 0) -> Backlog:
    async with open_crowd(folder) as many:
        await many.grow_to(1)
        await _stop(many.shop)
        for _ in range(count):
            many.shop.send(name_of(0), characters)
        took_s = await _catch_up(many.shop, count)
        bare_s = bare_seconds(many.shop.stage.paths.journal, folder / "bare.sqlite3")
        return Backlog(count, took_s, bare_s, await _start_s(many.shop))


async def _catch_up(shop: Workshop, count: int) -> float:
    """Start the bridge: seconds from the first row to the last."""
    await shop.stage.start_bridge()
    first = await _until(shop, 1)
    began = time.perf_counter()
    last = await _until(shop, count)
    took_s = time.perf_counter() - began
    return took_s * count / max(1, last - first)


async def _until(shop: Workshop, count: int) -> int:
    """Wait for so many rows; how many there are."""
    with trio.fail_after(_PATIENCE_S):
        while True:
            if (found := shop.waiting()) >= count:
                return found
            await trio.sleep(_LOOK_S)


async def _start_s(shop: Workshop) -> float:
    """Seconds of `bridge start`, the median of a few."""
    took = []
    for _ in range(STARTS):
        await _stop(shop)
        began = time.perf_counter()
        await shop.stage.start_bridge()
        took.append(time.perf_counter() - began)
    return median(took)


async def _stop(shop: Workshop) -> None:
    done = await shop.stage.person("bridge", "stop")
    if done.exit != 0:
        raise NotSo(f"bridge stop ended with {done.exit}: {done.stderr}")
    shop.stage.bridge_pid = 0
