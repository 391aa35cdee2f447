"""The demo's own process: plays every step and tells what was seen.

Runs apart from the command that started it. Owns the stage. Promises one JSON
line for each step on standard output, and that everything on the stage is ended
also when nobody listens any more or SIGTERM ends it.
"""

from __future__ import annotations

import signal
import sys
from contextlib import aclosing
from pathlib import Path

import msgspec
import trio

from bridge.cli.demo_scenes import Step, perform
from bridge.cli.demo_stage import NotSo, Stage, open_stage
from bridge.clock import SystemClock

# A net below the steps' own deadlines.
PLAY_S = 180.0


class Played(msgspec.Struct, frozen=True, tag_field="line", tag="played"):
    """One step."""

    step: Step


class Ended(msgspec.Struct, frozen=True, tag_field="line", tag="ended"):
    """The last line; without it the demo did not come to its end."""

    ok: bool


Line = Played | Ended


async def play(folder: Path) -> None:
    """Everything, in an empty folder."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_stop_on_signal, nursery.cancel_scope)
        with trio.fail_after(PLAY_S):
            _tell(Ended(await _play_on_stage(folder)))
        nursery.cancel_scope.cancel()


async def _play_on_stage(folder: Path) -> bool:
    ok = True
    async with open_stage(folder, SystemClock()) as stage:
        async with aclosing(perform(stage)) as steps:
            async for step in steps:
                _tell(Played(step))
                ok = step.ok
        last = await _close(stage)
        _tell(Played(last))
    return ok and last.ok


async def _close(stage: Stage) -> Step:
    began = stage.clock.running()
    try:
        ok, said = True, f"{await stage.close()} processes ended by pid"
    except NotSo as error:
        ok, said = False, str(error)
    took = round(stage.clock.running() - began, 2)
    return Step("Everything that was started is ended", ok, took, said)


async def _stop_on_signal(scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


def _tell(line: Line) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    trio.run(play, Path(sys.argv[1]))
