"""Runs every benchmark and prints one table; exit 1 when a limit is missed.

The measuring process runs apart from whoever started it, as the demo does, so that
a coding agent above it changes nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

from bridge.cli.apart import started_apart
from bridge.service.background import clean_environment
from tests.benchmarks.backlog import backlog_rows
from tests.benchmarks.curves import crowd_rows
from tests.benchmarks.fanout import fanout_rows
from tests.benchmarks.footprint import bridge_rows, embedded_rows
from tests.benchmarks.hcom import hcom_rows
from tests.benchmarks.hooks import hook_rows, mail_rows
from tests.benchmarks.table import Row, missed, rendered
from tests.benchmarks.workshop import ROOT, Choice, open_workshop

_ROWS = "rows.json"
_CALM_LOAD = 1.0
_QUICK = Choice(rounds=60, messages=60, settle_s=8, idle_s=5)


async def measure(folder: Path, choice: Choice) -> None:
    """Everything, or as much as there is time for until SIGTERM."""
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def measure_all() -> None:
                await measure_in(folder, choice)
                nursery.cancel_scope.cancel()

            nursery.start_soon(measure_all)
            await anext(signals)
            nursery.cancel_scope.cancel()


async def measure_in(folder: Path, choice: Choice) -> None:
    """One after the other; the rows go to a file."""
    rows: list[Row] = []
    async with open_workshop(folder / "apart") as shop:
        tell("hooks")
        if not shop.ask_is_compiled:
            tell("no C compiler here: every hook is the Python twin")
        rows += await hook_rows(shop, choice)
        tell("hooks with mail")
        rows += await mail_rows(shop, choice)
        rows += await bridge_rows(shop)
        if choice.hcom:
            tell("hcom")
        rivals = await hcom_rows(shop, choice, folder / "hcom")
    tell(f"memory and idle time, {choice.settle_s:.0f} s")
    rows += [*await embedded_rows(folder / "embedded", choice), *rivals]
    tell("curves: 1, 100 and 1,000 attachments")
    rows += await crowd_rows(folder / "crowd")
    tell("a long backlog")
    rows += await backlog_rows(folder / "backlog")
    tell("every stream woken at once")
    rows += await fanout_rows(folder / "fanout")
    (folder / _ROWS).write_bytes(msgspec.json.encode(rows))


def tell(what: str) -> None:
    """What is being measured now."""
    say(f"{what} ...")


def say(text: str) -> None:
    """A line or more for the person, now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    """The exit code."""
    if words[:1] == ["--apart"]:
        trio.run(measure, Path(words[1]), msgspec.json.decode(words[2], type=Choice))
        return 0
    choice = chosen(words)
    folder = Path(tempfile.mkdtemp(prefix="agentworks-bench-"))
    try:
        return measured_apart(folder, choice)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def chosen(words: list[str]) -> Choice:
    """How thorough a run is wanted."""
    said = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    said.add_argument("--quick", action="store_true", help="shorter waits, 60 rounds")
    said.add_argument("--hcom", default="", metavar="PATH", help="hcom's program")
    options = said.parse_args(words)
    choice = _QUICK if options.quick else Choice()
    hcom = shutil.which(options.hcom or "hcom") or ""
    return msgspec.structs.replace(choice, hcom=os.path.abspath(hcom) if hcom else "")


def measured_apart(folder: Path, choice: Choice) -> int:
    """Start the measuring process, follow it, print its table."""
    command = (sys.executable, "-P", "-m", "tests.benchmarks", "--apart", str(folder))
    environment = {**clean_environment(os.environ), "PYTHONPATH": str(ROOT)}
    log = folder / "bench.log"
    load = os.getloadavg()[0]
    words = msgspec.json.encode(choice).decode()
    with started_apart((*command, words), environment, log) as output:
        for line in output:
            say(line.decode().rstrip())
    rows: list[Row] = []
    with suppress(FileNotFoundError):
        rows = msgspec.json.decode((folder / _ROWS).read_bytes(), type=list[Row])
    if not rows:
        say(f"The benchmarks did not come to their end:\n{log.read_text()[-3000:]}")
        return 1
    say(f"\n{rendered(rows)}\n\n{explained(choice, load)}")
    if over := missed(rows):
        say(f"\nMissed: {', '.join(over)}")
        if load > _CALM_LOAD:
            say("Other programs kept this computer busy: run it again when it is calm.")
    return 1 if over else 0


def explained(choice: Choice, load: float) -> str:
    """How to read the table."""
    return (
        f"Medians of {choice.rounds} runs ({choice.messages} with mail), each"
        " posix_spawn and waitpid of the absolute program from one long-lived\n"
        "script, its output to a file; every hook alternates with `true`, so that"
        " drift cancels. Compare ratios, not milliseconds.\n"
        f"Load when it began: {load:.1f} on {os.cpu_count()} processors."
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
