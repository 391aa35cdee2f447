"""`demo`: one message all the way round, with real processes, a line per step.

Owns the scratch folder. Promises that nothing of the person's own bridge is
touched, that a failed step ends in exit 1, and that the folder is gone at the
end unless it is to be kept.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import click
import msgspec

from bridge.cli.apart import started_apart
from bridge.cli.demo_play import Ended, Line, Played
from bridge.cli.demo_scenes import Step
from bridge.cli.invocation import Invocation, verb
from bridge.cli.present import document, say, styled
from bridge.clock import SystemClock
from bridge.core.visible import visible
from bridge.errors import EXIT_FAILED, EXIT_OK
from bridge.service.background import clean_environment

_PLAY = "bridge.cli.demo_play"
_INDENT = " " * 13
# Our folder and the server's socket in it take 38 of the 103 bytes there are.
_LONGEST_SCRATCH = 65
_lines = msgspec.json.Decoder(Line)


@verb("demo")
@click.option("--keep", is_flag=True, help="Leave the scratch folder in its place.")
def demo(invocation: Invocation, keep: bool) -> int:
    """Show one message all the way round."""
    clock = SystemClock()
    began = clock.running()
    folder = Path(tempfile.mkdtemp(prefix="agentworks-demo-", dir=_scratch()))
    steps: list[Step] = []
    try:
        if not invocation.as_json:
            say(f"A server, a bridge and three scripts of their own, in {folder}\n")
        ok = _watch(folder, steps, invocation.as_json)
        ok = _explained(folder, steps, ok, invocation.as_json)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    _conclude(invocation, steps, ok, clock.running() - began, folder if keep else None)
    return EXIT_OK if ok else EXIT_FAILED


def _scratch() -> str:
    """Where temporary files go, unless a socket's path there would be too long."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= _LONGEST_SCRATCH else "/tmp"  # noqa: S108 - mkdtemp makes it private


def _watch(folder: Path, steps: list[Step], is_quiet: bool) -> bool:
    """Play it; True when it came to its end and all was so."""
    command = (sys.executable, "-P", "-m", _PLAY, str(folder))
    environment = clean_environment(os.environ)
    with started_apart(command, environment, folder / "play.log") as output:
        for line in map(_lines.decode, output):
            match line:
                case Played(step=step):
                    steps.append(step)
                    if not is_quiet:
                        _show(step)
                case Ended(ok=ok):
                    return ok
    return False


def _explained(folder: Path, steps: list[Step], ok: bool, is_quiet: bool) -> bool:
    """A play that broke off is a step that failed."""
    if ok or any(not step.ok for step in steps):
        return ok
    words = (folder / "play.log").read_text("utf-8", "replace").strip()
    steps.append(Step("The demo came to its end", False, 0, words[-2000:]))
    if not is_quiet:
        _show(steps[-1])
    return False


def _show(step: Step) -> None:
    word = styled("ok  ", colour="green") if step.ok else styled("FAIL", colour="red")
    click.echo(f"{word} {step.seconds:5.1f} s  {visible(step.title)}")
    if step.said:
        click.echo(f"{_INDENT}{visible(step.said)}")
    for line in step.shown.splitlines():
        click.echo(f"{_INDENT}| {visible(line)}".rstrip())


def _conclude(
    invocation: Invocation,
    steps: list[Step],
    ok: bool,
    seconds: float,
    kept: Path | None,
) -> None:
    if invocation.as_json:
        document(
            {
                "ok": ok,
                "seconds": round(seconds, 1),
                "steps": msgspec.to_builtins(steps),
                "folder": None if kept is None else str(kept),
            }
        )
        return
    passed = sum(step.ok for step in steps)
    words = f"all {passed} steps passed" if ok else f"{passed} passed, then it failed"
    say(f"\n{words[0].upper()}{words[1:]}, in {seconds:.1f} s.")
    if kept is not None:
        say(f"Kept: {kept}")
