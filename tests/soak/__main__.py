"""Runs a soak and does its books; exit 1 when they do not balance.

    python -m tests.soak [--seconds 120] [--seed N] [--agents 50] [--keep]

The seed decides what is done and when; how the processes take it is up to the
computer. The folder of a run that fails is kept and named.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import trio
from msgspec import Struct

from bridge.clock import SystemClock
from tests.journeys.rig.puppets import puppet
from tests.soak import watching
from tests.soak.chaos import KILLS_UNTIL, Chaos, plan
from tests.soak.dice import Dice
from tests.soak.evidence import gather, notes_of, queued_by
from tests.soak.install import install_ask
from tests.soak.ledger import Ledger, balance
from tests.soak.report import histories, table
from tests.soak.settling import settle
from tests.soak.world import ACKS, HERE, World, open_world

WARM_AT = KILLS_UNTIL + 0.1  # of the time


class Choice(Struct, frozen=True):
    """What kind of run is wanted."""

    seconds: float
    seed: str
    agents: int
    pace_s: float


class Found(Struct):
    """What came of it: the books, and what else may not be."""

    ledger: Ledger
    text: str
    accidents: list[str]

    @property
    def is_well(self) -> bool:
        """Nothing to mend."""
        return self.ledger.balances and not self.accidents


async def soak(folder: Path, choice: Choice) -> Found:
    """The whole of it, in a scratch folder."""
    ask = install_ask(folder)
    async with open_world(folder, ask, choice.seed) as world, AsyncExitStack() as more:
        hostile = await more.enter_async_context(
            puppet(world.computer.environment, HERE / "hostile.py")
        )
        await people(world, choice)
        dice = Dice(choice.seed, "chaos")
        chaos = Chaos(world, dice, hostile, choice.pace_s)
        warm: dict[str, watching.Sample] = {}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(warmed, world, chaos, choice.seconds * WARM_AT, warm)
            await chaos.rage(plan(dice, choice.seconds))
        say("settling")
        await settle(world)
        await watched(world, warm)
        await world.stop()
        return books(world, chaos)


async def people(world: World, choice: Choice) -> None:
    """All scripts, attached and alive."""
    for number in range(choice.agents):
        await world.new_actor(f"agent-{number:02d}", ACKS[number % len(ACKS)])
    for actor in world.living():
        await world.begin(actor, choice.pace_s)
    say(f"{len(world.living())} scripts are attached")


async def warmed(
    world: World, chaos: Chaos, after_s: float, warm: dict[str, watching.Sample]
) -> None:
    """What bridge and server hold once they have worked for a while."""
    await trio.sleep(after_s)
    await chaos.attack("forged")  # loads what the bridge loads only once asked to
    for which in ("bridge", "server"):
        warm[which] = await watching.at_rest(world.running(which).pid)


async def watched(world: World, warm: dict[str, watching.Sample]) -> None:
    """What is not flat, and who was left behind."""
    await world.mend()
    for which in ("bridge", "server"):
        end = watching.sample(world.running(which).pid)
        begin = warm[which]
        say(
            f"{which}: {begin.memory_kib // 1024} to {end.memory_kib // 1024} MiB, "
            f"{begin.descriptors} to {end.descriptors} descriptors"
        )
        world.accidents += watching.growth(which, begin, end, len(world.living()))
    own = {world.running(which).pid for which in ("bridge", "server")}
    world.accidents += watching.zombies(own)


def books(world: World, chaos: Chaos) -> Found:
    """Everything, read from outside."""
    notes = notes_of(world.notes)
    for name, until in world.unlisted.items():
        world.dropped |= queued_by(notes, name, until)
    evidence = gather(
        notes,
        world.computer.paths.journal,
        world.computer.paths.server / "server.sqlite3",
        world.kills,
        world.dropped,
        world.unregistered,
        [each.name for each in world.living() if each.name not in world.detached],
        world.forgotten,
    )
    ledger = balance(evidence)
    world.accidents += watching.shouts(world.computer.records)
    world.accidents += watching.hooks_that_broke(notes)
    if any("msg-" in told for told in chaos.told):
        world.accidents.append("a hostile client was told of a message")
    text = table(ledger, evidence, chaos.done)
    return Found(
        ledger, "\n".join([text, *histories(ledger, evidence, notes)]), world.accidents
    )


def main(words: list[str]) -> int:
    """The exit code."""
    said = argparse.ArgumentParser(prog="python -m tests.soak")
    said.add_argument(
        "--seconds", type=float, default=120, help="of work, then it settles"
    )
    said.add_argument("--seed", default="", help="of an earlier run")
    said.add_argument("--agents", type=int, default=50)
    said.add_argument("--pace", type=float, default=0.35, help="seconds between deeds")
    said.add_argument("--keep", action="store_true", help="keep the folder")
    options = said.parse_args(words)
    seed = options.seed or SystemClock().random_bytes(4).hex()
    say(f"seed {seed}")
    choice = Choice(options.seconds, seed, options.agents, options.pace)
    folder = Path(tempfile.mkdtemp(prefix="agentworks-soak-"))
    found = trio.run(soak, folder, choice)
    say(found.text)
    for accident in found.accidents:
        say(f"Not well: {accident}")
    if found.is_well and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        say(f"Kept: {folder}")
    say(f"seed {seed}: {'balanced' if found.is_well else 'NOT BALANCED'}")
    return 0 if found.is_well else 1


def say(text: str) -> None:
    """A line or more for the person, now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
