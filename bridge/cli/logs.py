"""`bridge logs`: what the bridge said last, wherever it is kept.

Promises that no control character of a logged text reaches the terminal raw.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import click

from bridge.cli import lifecycle, managed
from bridge.cli.invocation import Invocation, verb
from bridge.cli.present import document
from bridge.core.visible import one_line
from bridge.errors import BridgeError, Unavailable
from bridge.paths import Paths, vet_folder

_LOOK_AGAIN_S = 0.5
_LINE_LIMIT = 20_000  # characters


@verb("logs")
@click.option(
    "--lines",
    default=50,
    type=click.IntRange(0, 100_000),
    metavar="N",
    help="How many of the last lines are shown.",
)
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
def logs(invocation: Invocation, lines: int, follow: bool) -> None:
    """Show what the bridge said last.

    A service of systemd keeps it in the journal of systemd, every other bridge in
    a log file.
    """
    source, said = _said(invocation, lines, follow)
    if invocation.as_json and not follow:
        document({"source": source, "lines": list(said)})
        return
    for line in said:
        if invocation.as_json:
            document({"line": line})
        else:
            click.echo(one_line(line, limit=_LINE_LIMIT))


def _said(
    invocation: Invocation, lines: int, follow: bool
) -> tuple[str, Iterator[str]]:
    paths = invocation.paths
    service = managed.usable(paths)
    command = service.log_command(lines, follow) if service is not None else ()
    if command and not _runs_another(paths):
        return command[0], _of_command(list(command))
    file = paths.log / "bridge.log"
    vet_folder(file.parent)
    return str(file), _of_file(file, lines, follow)


def _runs_another(paths: Paths) -> bool:
    """A service may be set up and idle while another bridge runs."""
    with suppress(BridgeError):  # a log is looked at when something is wrong
        running = lifecycle.running(paths)
        return running is not None and not managed.facts(paths, running.pid).runs_it
    return False


def _of_command(command: list[str]) -> Generator[str]:
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as reading:
            yield from _lines_until_end(reading)
    except OSError as error:
        raise _no_log(f"{command[0]} is not there") from error


def _lines_until_end(reading: subprocess.Popen[str]) -> Iterator[str]:
    assert reading.stdout is not None  # noqa: S101 - Popen was asked for it
    assert reading.stderr is not None  # noqa: S101
    count = 0
    try:
        for count, line in enumerate(reading.stdout, 1):  # noqa: B007 - told below
            yield line.rstrip("\n")
        words = reading.stderr.read().strip().splitlines()
    finally:
        reading.terminate()
    # journalctl ends well also where nobody keeps a journal.
    if reading.wait() not in (0, -signal.SIGTERM) or (words and not count):
        raise _no_log(words[-1] if words else "it was not readable")


def _of_file(file: Path, lines: int, follow: bool) -> Iterator[str]:
    if not file.exists() and not follow:
        raise _no_log(f"there is no {file}")
    position = 0
    if file.exists():
        with open(file, encoding="utf-8", errors="replace") as opened:
            yield from (line.rstrip("\n") for line in deque(opened, lines))
            position = opened.tell()
    while follow:
        time.sleep(_LOOK_AGAIN_S)
        if not file.exists():
            continue
        if file.stat().st_size < position:  # a new file took its place
            position = 0
        with open(file, encoding="utf-8", errors="replace") as opened:
            opened.seek(position)
            yield from (line.rstrip("\n") for line in opened)
            position = opened.tell()


def _no_log(why: str) -> Unavailable:
    return Unavailable(
        "no_log",
        f"The bridge's log cannot be shown: {one_line(why).rstrip('.')}.",
        "See whether the bridge runs: agentworks bridge status",
    )
