"""How long a hook takes, against `true` in the same alternating run."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from bridge.cli.demo_stage import NotSo, Script
from tests.benchmarks.table import Row, median, milliseconds, ratio
from tests.benchmarks.workshop import Choice, Workshop, command

DOWN, UNATTACHED, ATTACHED, WITH_MAIL = 1.5, 2.0, 2.5, 3.0
TRUE, HOOK, TWIN = "true", "hook", "  Python twin"
SLICE = 20


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
    for _ in range(choice.messages):
        for label, words in ((HOOK, shop.ask), ("twin", shop.twin)):
            text, accepted = shop.send("dora")
            await shop.arrive()
            hook = await shop.measure(dora, {label: command(words)})
            if text not in hook.printed[label]:
                raise NotSo(f"the hook did not print {text!r}")
            took.setdefault(label, []).extend(hook.samples[label])
            if label == HOOK:
                through.append((hook.ended_ns - accepted) / 1e6)
        bare = await shop.measure(dora, {TRUE: command([shop.true])})
        took.setdefault(TRUE, []).extend(bare.samples[TRUE])
        took.setdefault("commit", []).extend(await _bare_commit(shop, dora))
    found = {label: median(samples) for label, samples in took.items()}
    bar = found[TRUE] + found["commit"]
    return [
        ratio(
            "hook, attached, with mail",
            found[HOOK],
            bar,
            WITH_MAIL,
            f"{milliseconds(found['hook'])}, true {milliseconds(found[TRUE])}"
            f" + synced commit {milliseconds(found['commit'])}",
        ),
        ratio(TWIN, found["twin"], bar, None, f"{milliseconds(found['twin'])}"),
        Row(
            "message accepted -> printed",
            median(through),
            "ms",
            beside="by a hook started when the journal has it",
        ),
    ]


async def _bare_commit(shop: Workshop, script: Script) -> list[float]:
    create, row = shop.offer_row()
    path = str(shop.stage.paths.state / "bare.sqlite3")
    said = {"path": path, "create": create, "row": row}
    answer = await script.say({"commit": said, "rounds": 1})
    return [float(each) for each in answer["samples"]]
