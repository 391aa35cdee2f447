"""How long a hook takes, against `true` in the same alternating run."""

from __future__ import annotations

import msgspec
import trio
from msgspec import Struct

from bridge.cli.demo_stage import NotSo, Script
from tests.benchmarks.table import Row, median, milliseconds, ratio
from tests.benchmarks.workshop import Choice, Workshop, command

DOWN, UNATTACHED, ATTACHED, WITH_MAIL = 1.5, 2.0, 2.5, 3.0
TRUE, HOOK, TWIN, COMMIT = "true", "hook", "  Python twin", "commit"
SLICE = 20
# Each of what is compared starts on a computer that has just come to rest.
CALM_S = 0.02


class Line(Struct, frozen=True):
    """One line to be measured: which hook, below which script."""

    what: str
    limit: float | None
    script: Script
    hook: list[str]
    samples: dict[str, list[float]] = msgspec.field(default_factory=dict)


async def hook_rows(shop: Workshop, choice: Choice) -> list[Row]:
    """Daemon down, up and unattached, attached without mail."""
    carol, bob = await shop.worker(), await shop.worker("bob")
    # The first Stop of a new attachment brings its setup text.
    first = await shop.measure(bob, {"first": command(shop.ask)})
    if "bob" not in first.printed["first"]:
        raise NotSo(f"bob's first Stop printed {first.printed['first']!r}")
    down, down_twin = shop.without_daemon()
    lines = [
        Line("hook, daemon down", DOWN, carol, down),
        Line(TWIN, None, carol, down_twin),
        Line("hook, daemon up, chat unattached", UNATTACHED, carol, shop.ask),
        Line(TWIN, None, carol, shop.twin),
        Line("hook, attached, no mail", ATTACHED, bob, shop.ask),
        Line(TWIN, None, bob, shop.twin),
    ]
    # In slices, so that a busy moment of the computer meets every line.
    for _ in range(choice.rounds // SLICE):
        for line in lines:
            await _measure_slice(shop, line)
    return [_row(line) for line in lines]


async def _measure_slice(shop: Workshop, line: Line) -> None:
    """Alternating with `true`; raises NotSo when the hook printed anything."""
    runs = {TRUE: command([shop.true]), HOOK: command(line.hook)}
    measured = await shop.measure(line.script, runs, SLICE)
    if any(measured.printed.values()):
        raise NotSo(f"a hook without mail printed {measured.printed}")
    for label, samples in measured.samples.items():
        line.samples.setdefault(label, []).extend(samples)


def _row(line: Line) -> Row:
    hook, true = median(line.samples[HOOK]), median(line.samples[TRUE])
    beside = f"{milliseconds(hook)}, true {milliseconds(true)}"
    return ratio(line.what, hook, true, line.limit, beside)


async def mail_rows(shop: Workshop, choice: Choice) -> list[Row]:
    """With mail, against `true` and one bare synced commit of the same row."""
    dora = await shop.worker("dora")
    await shop.measure(dora, {"first": command(shop.ask)})
    took: dict[str, list[float]] = {}
    through: list[float] = []
    for number in range(choice.messages):
        for label, words in ((HOOK, shop.ask), (TWIN, shop.twin)):
            shop.send("dora")
            await shop.arrive()
            await trio.sleep(CALM_S)
            took.setdefault(label, []).append(await _printed(shop, dora, words))
        took.setdefault(TRUE, []).append(await _true(shop, dora))
        took.setdefault(COMMIT, []).append(await _bare_commit(shop, dora, number))
        through.append(await _through(shop, dora))
    found = {label: median(samples) for label, samples in took.items()}
    bar = found[TRUE] + found[COMMIT]
    beside = (
        f"{milliseconds(found[HOOK])}, true {milliseconds(found[TRUE])}"
        f" + synced commit {milliseconds(found[COMMIT])}"
    )
    return [
        ratio("hook, attached, with mail", found[HOOK], bar, WITH_MAIL, beside),
        ratio(TWIN, found[TWIN], bar, None, milliseconds(found[TWIN])),
        Row(
            "message accepted -> printed",
            median(through),
            "ms",
            beside="by a hook started when the journal has it",
        ),
    ]


async def _printed(shop: Workshop, script: Script, words: list[str]) -> float:
    """Milliseconds of a hook that printed the newest message."""
    hook = await shop.measure(script, {HOOK: command(words)})
    if shop.newest not in hook.printed[HOOK]:
        raise NotSo(f"the hook did not print {shop.newest!r}")
    return hook.samples[HOOK][0]


async def _through(shop: Workshop, script: Script) -> float:
    """Milliseconds from the server's yes to the end of the hook, nothing between."""
    accepted = shop.send("dora")
    await shop.arrive()
    hook = await shop.measure(script, {HOOK: command(shop.ask)})
    return (hook.ended_ns - accepted) / 1e6


async def _true(shop: Workshop, script: Script) -> float:
    await trio.sleep(CALM_S)
    bare = await shop.measure(script, {TRUE: command([shop.true])})
    return bare.samples[TRUE][0]


async def _bare_commit(shop: Workshop, script: Script, number: int) -> float:
    await trio.sleep(CALM_S)
    create, row = shop.offer_row()
    path = str(shop.stage.paths.state / "bare.sqlite3")
    said = {"path": path, "create": create, "row": row, "first": number}
    answer = await script.say({"commit": said, "rounds": 1})
    return float(answer["samples"][0])
