"""What a hook waits while the embedded server wakes every stream at once.

A mailbox wrote to every member; when it is unregistered, all of them are told in
the same moment that its messages are withdrawn.
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from bridge.cli.demo_stage import READY_S, open_stage, until
from bridge.clock import SystemClock
from bridge.local.client import call
from bridge.local.requests import (
    Hello,
    MessagesRegister,
    MessagesSend,
    MessagesUnregister,
)
from bridge.paths import Paths
from bridge.service.programs import install_programs
from tests.benchmarks import crowd
from tests.benchmarks.curves import Crowd, name_of, percentile
from tests.benchmarks.table import Row, median, milliseconds
from tests.benchmarks.workshop import ROOT, Workshop

STREAMS = 200
ROUNDS = 5
P99_MS = 15.0
_ASKS_S = 0.5
_BEFORE_S = 0.05
_SETTLES_S = 0.5
_CALL_S = 10.0
_MAILBOX = "mailbox"


async def fanout_rows(folder: Path) -> list[Row]:
    """The p99 of turns that end in the half second around such a moment."""
    folder.mkdir(mode=0o700)
    async with open_stage(folder, SystemClock()) as stage:
        stage.environment["PYTHONPATH"] = str(ROOT)
        install_programs(stage.paths)
        command = (sys.executable, "-P", "-m", "tests.benchmarks.embedded")
        bridge = await stage.start("bridge.log", *command)
        stage.bridge_pid = bridge.pid
        await until(lambda: _answers(stage.paths), "the bridge answers", READY_S)
        shop = Workshop(stage)
        script = await stage.start_script(str(crowd.__file__), str(stage.paths.run))
        many = Crowd(shop, script)
        await many.grow_to(STREAMS)
        calm = await many.ask(2 * _ASKS_S, askers=1)
        took = [each for _ in range(ROUNDS) for each in await _woken(many)]
    beside = (
        f"p99 {milliseconds(percentile(calm, 99))} without; medians"
        f" {milliseconds(median(took))} and {milliseconds(median(calm))}"
    )
    return [
        Row(
            f"hook p99 while {STREAMS} embedded streams wake",
            percentile(took, 99),
            "ms",
            P99_MS,
            beside,
        )
    ]


async def _woken(many: Crowd) -> list[float]:
    """One moment at which every stream is woken, and the turns around it."""
    paths = many.shop.stage.paths
    await trio.to_thread.run_sync(call, paths, MessagesRegister(_MAILBOX), _CALL_S)
    for number in range(STREAMS):
        said = MessagesSend("hello", agent=_MAILBOX, target=f"agent:{name_of(number)}")
        await trio.to_thread.run_sync(call, paths, said, _CALL_S)
    await trio.sleep(_SETTLES_S)
    took: list[float] = []

    async def ask() -> None:
        took.extend(await many.ask(_ASKS_S, askers=1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.sleep(_BEFORE_S)
        end = MessagesUnregister(_MAILBOX)
        await trio.to_thread.run_sync(call, paths, end, _CALL_S)
    return took


async def _answers(paths: Paths) -> bool | None:
    call(paths, Hello(), _CALL_S)
    return True
