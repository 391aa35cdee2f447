"""hcom's hook in the same table, where hcom is installed.

hcom gives mail only to sessions that it started itself, so it starts a `claude`
that is a small script of ours. Its home is a scratch folder, and what it starts
is ended by pid.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import trio

from bridge.cli.demo_stage import NotSo, Script, until
from bridge.providers.process import facts_of, pids_of_user
from tests.benchmarks.hooks import TRUE
from tests.benchmarks.table import Row, median, milliseconds, ratio
from tests.benchmarks.workshop import Choice, Measured, Workshop, command

_STARTS_S = 20.0
_CLAUDE = """#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.332 (Claude Code)"; exit 0; fi
env > "{folder}/environment.new" && mv "{folder}/environment.new" "{folder}/environment"
exec sleep 600
"""
_SESSION = "0b8f0c3e-7d1c-4a5e-9f2e-3b1b7a2f4c11"
_STARTED = {
    "session_id": _SESSION,
    "transcript_path": "/tmp/transcript.jsonl",
    "cwd": "/tmp",
    "hook_event_name": "SessionStart",
    "source": "startup",
}


class Rival:
    """hcom in a home of its own, with one session that it started."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program = program
        self._folder = folder
        self._home = folder / "home"
        path = f"{folder / 'programs'}:{Path(program).parent}:/usr/bin:/bin"
        self.plain = {"HOME": str(self._home), "PATH": path, "TERM": "xterm"}
        self.inside: dict[str, str] = {}

    async def start(self) -> None:
        """Until the session that it started is known to it."""
        claude = self._folder / "programs" / "claude"
        for folder in (self._home, claude.parent):
            folder.mkdir(mode=0o700, parents=True)
        claude.write_text(_CLAUDE.format(folder=self._folder))
        claude.chmod(0o700)
        await self.run("1", "claude", "--headless", "--go")
        self.inside = await until(self._told, "hcom starts its session", _STARTS_S)
        await self.run("sessionstart", stdin=json.dumps(_STARTED), inside=True)

    async def run(self, *words: str, stdin: str = "", inside: bool = False) -> str:
        """One command of hcom, to its end."""
        done = await trio.run_process(
            [self.program, *words],
            stdin=stdin.encode(),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env=self.inside if inside else self.plain,
            cwd=self._home,
        )
        if done.returncode != 0:
            raise NotSo(f"hcom {words[0]} ended with {done.returncode}")
        return done.stdout.decode()

    def end(self) -> None:
        """End every process that it started in this folder."""
        for facts in filter(None, map(facts_of, pids_of_user())):
            if str(self._folder) in " ".join(facts.arguments) or _is_at_home(
                facts.pid, self._home
            ):
                os.kill(facts.pid, signal.SIGKILL)

    async def _told(self) -> dict[str, str] | None:
        file = self._folder / "environment"
        if not file.exists():
            return None
        entries = [line.partition("=") for line in file.read_text().splitlines()]
        named = {key: value for key, _, value in entries if key.startswith("HCOM_")}
        return {**self.plain, **named}


async def hcom_rows(shop: Workshop, choice: Choice, folder: Path) -> list[Row]:
    """Its hook as it is in a chat that it does not know, and in one that it does."""
    if not choice.hcom:
        return []
    rival = Rival(choice.hcom, folder)
    folder.mkdir(mode=0o700)
    try:
        await rival.start()
        return await _measured(shop, choice, rival)
    finally:
        rival.end()


async def _measured(shop: Workshop, choice: Choice, rival: Rival) -> list[Row]:
    script = await shop.worker()
    post = [rival.program, "post"]
    rows = []
    for what, environment in (
        ("hcom's hook, chat unattached", rival.plain),
        ("hcom's hook, attached, no mail", rival.inside),
    ):
        runs = {TRUE: command([shop.true]), "hcom": command(post, environment)}
        found = await shop.measure(script, runs, choice.rounds)
        rows.append(_row(what, found, median(found.samples["hcom"])))
    rows.append(await _with_mail(shop, choice, rival, script))
    return rows


async def _with_mail(
    shop: Workshop, choice: Choice, rival: Rival, script: Script
) -> Row:
    name = rival.inside["HCOM_INSTANCE_NAME"]
    took = []
    runs = {"hcom": command([rival.program, "post"], rival.inside)}
    bare = await shop.measure(script, {TRUE: command([shop.true])}, choice.messages)
    for number in range(choice.messages):
        text = f"Message number {number}: shall we look at the parser together?"
        await rival.run("send", "-b", f"@{name}", "--", text)
        found = await shop.measure(script, runs)
        if text not in found.printed["hcom"]:
            raise NotSo(f"hcom's hook printed {found.printed['hcom'][:200]!r}")
        took += found.samples["hcom"]
    return _row("hcom's hook, attached, with mail", bare, median(took))


def _row(what: str, found: Measured, took: float) -> Row:
    true = median(found.samples[TRUE])
    beside = f"{milliseconds(took)}, true {milliseconds(true)}"
    return ratio(what, took, true, None, beside)


def _is_at_home(pid: int, home: Path) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"HOME={home}\0".encode() in environment
