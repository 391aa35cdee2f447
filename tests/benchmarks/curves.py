"""What more attachments and a longer journal cost: curves, each against its start.

Owns a crowd of scripts attached to one bridge, whose server is a process of its own.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from bridge.cli.demo_stage import NotSo, Script
from bridge.local.client import call
from bridge.local.replies import AttachReply, decode_answer
from bridge.local.requests import Attach
from tests.benchmarks import crowd
from tests.benchmarks.footprint import pss_mb
from tests.benchmarks.table import Row, median
from tests.benchmarks.workshop import Workshop, open_workshop

SIZES = (1, 100, 1_000)
ASKERS = 4
ASKS_S = 3.0
KIB_EACH = 60.0
# Constant is the aim; half as much again is what noise of two processors may add.
GROWS = 1.5
_ATTACH_S = 20.0
_SLICE = 25
_TRIES = 50


class Crowd:
    """Attached scripts, numbered from 0, named member-0 and so on."""

    def __init__(self, shop: Workshop, script: Script) -> None:
        self.shop = shop
        self.size = 0
        self._script = script

    async def grow_to(self, size: int) -> None:
        """More of them, each attached and past its setup text."""
        grown = await self._script.say({"grow": size - self.size})
        first, self.size = self.size, size
        for number, pid in enumerate(grown["pids"], first):
            request = Attach(
                name=name_of(number), provider="script", native_pid=pid, confirm=True
            )
            ok = await trio.to_thread.run_sync(
                call, self.shop.stage.paths, request, _ATTACH_S
            )
            decode_answer(ok, AttachReply)
        for begin in range(first, size, _SLICE):
            await self.once(range(begin, min(begin + _SLICE, size)))

    async def once(self, members: Sequence[int]) -> list[tuple[str, int]]:
        """Each ends a turn: what was printed, and when (ns)."""
        answer = await self._script.say({"once": list(members)})
        return [(text, at) for text, at in answer["answers"]]

    async def ask(self, seconds: float, askers: int = ASKERS) -> list[float]:
        """Turns end one after the other in as many members: milliseconds of each."""
        members = [number * self.size // askers for number in range(askers)]
        answer = await self._script.say({"ask": members, "seconds": seconds})
        return [took for each in answer["answers"] for took in each]


def name_of(number: int) -> str:
    """Of one member."""
    return f"member-{number}"


@asynccontextmanager
async def open_crowd(folder: Path) -> AsyncIterator[Crowd]:
    """A crowd of nobody yet, a bridge, and a server without limits."""
    async with open_workshop(folder) as shop:
        run = str(shop.stage.paths.run)
        script = await shop.stage.start_script(str(crowd.__file__), run)
        yield Crowd(shop, script)


async def crowd_rows(folder: Path, sizes: Sequence[int] = SIZES) -> list[Row]:
    """Hook queries, memory and the way of a message, as attachments grow."""
    points: list[dict[str, float]] = []
    async with open_crowd(folder) as many:
        for size in sizes:
            await many.grow_to(size)
            points.append(await _point(many))
    return _rows(points)


async def _point(many: Crowd) -> dict[str, float]:
    """Everything that is measured at one size."""
    took = await many.ask(ASKS_S)
    bridge = many.shop.stage.bridge_pid
    return {
        "size": many.size,
        "queries": len(took) / ASKS_S,
        "p99": percentile(took, 99),
        "median": median(took),
        "mb": pss_mb([bridge]),
        "through": median([await _through(many) for _ in range(20)]),
    }


async def _through(many: Crowd) -> float:
    """Milliseconds from the server's yes to what a hook printed."""
    accepted = many.shop.send(name_of(many.size // 2))
    await many.shop.arrive()
    # The journal has it a moment before the daemon's loop knows: ask again.
    for _ in range(_TRIES):
        ((text, ended),) = await many.once([many.size // 2])
        if many.shop.newest in text:
            return (ended - accepted) / 1e6
    raise NotSo(f"the hook printed {text!r}")


def _rows(points: Sequence[dict[str, float]]) -> list[Row]:
    first, last = points[0], points[-1]
    at = f"{last['size']:.0f} attachments against {first['size']:.0f}"
    before = points[-2]
    added = last["size"] - before["size"]
    each = (last["mb"] - before["mb"]) * 1e6 / 1024 / added

    def curve(what: str, unit: str = "ms") -> str:
        return ", ".join(
            f"{point['size']:.0f}: {point[what]:.{0 if unit == '/s' else 2}f} {unit}"
            for point in points
        )

    return [
        Row(
            f"hook queries a second, {at}",
            first["queries"] / last["queries"],
            "x slower",
            GROWS,
            curve("queries", "/s"),
        ),
        Row(f"hook p99, {at}", last["p99"] / first["p99"], "x", GROWS, curve("p99")),
        Row(
            f"accepted -> printed, {at}",
            last["through"] / first["through"],
            "x",
            2 * GROWS,
            curve("through"),
        ),
        Row(
            "bridge, memory for each attachment",
            each,
            "KiB",
            KIB_EACH,
            curve("mb", "MB"),
        ),
    ]


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest that so many percent do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
