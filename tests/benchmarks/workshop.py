"""Where it is measured: a stage with a server without narrow limits, and workers.

Owns how a message is sent to the server and seen in the journal, and the hook
clients: the installed one and its Python twin.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import trio
from msgspec import Struct

from bridge.cli.demo_stage import NotSo, Script, Stage, open_stage
from bridge.clock import SystemClock
from tests.benchmarks import worker

ROOT = Path(__file__).resolve().parents[2]
STDIN = json.dumps(
    {
        "session_id": "0b8f0c3e-7d1c-4a5e-9f2e-3b1b7a2f4c11",
        "transcript_path": "/home/person/.claude/projects/project/0b8f0c3e.jsonl",
        "cwd": "/home/person/project",
        "permission_mode": "default",
        "hook_event_name": "Stop",
        "stop_hook_active": False,
    }
)
HOOK = ("hook", "script", "stop")
ARRIVES_S = 10.0
_LOOK_S = 0.0003

Samples = Mapping[str, list[float]]


class Choice(Struct, frozen=True):
    """How thorough a run is to be; times in seconds."""

    rounds: int = 200
    messages: int = 80
    settle_s: float = 60.0
    idle_s: float = 30.0
    hcom: str = ""


class Measured(Struct, frozen=True):
    """What a worker says of a run."""

    samples: dict[str, list[float]]
    printed: dict[str, str]
    ended_ns: int


class Workshop:
    """See the module; made by `open_workshop`."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.true = shutil.which("true") or "/bin/true"
        self._number = 0

    # ---- workers -----------------------------------------------------------------

    async def worker(self, name: str = "") -> Script:
        """A script process, attached when it is given a name."""
        script = await self.stage.start_script(str(worker.__file__))
        if name:
            words = ("attach", name, "--yes", "--provider", "script", "--native-pid")
            (await self.stage.person("--json", *words, str(script.pid))).document()
        return script

    async def measure(
        self, script: Script, commands: Mapping[str, Any], rounds: int = 1
    ) -> Measured:
        """Run the commands below this script, in turns."""
        answer = await script.say(
            {"measure": commands, "rounds": rounds, "stdin": STDIN}
        )
        return Measured(**answer)

    # ---- hook clients ----------------------------------------------------------------

    @property
    def ask(self) -> list[str]:
        """The installed client's Stop hook."""
        return [str(self.stage.paths.bin / "ask"), *HOOK]

    @property
    def ask_is_compiled(self) -> bool:
        """False where no C compiler made it."""
        return not Path(self.ask[0]).read_bytes().startswith(b"#!")

    @property
    def twin(self) -> list[str]:
        """The Python twin's Stop hook, beside the installed client."""
        return [str(self.stage.paths.bin / "ask-twin"), *HOOK]

    def install_twin(self) -> None:
        """Put the Python twin beside whatever is installed."""
        _, _, rest = (ROOT / "hooks" / "ask.py").read_bytes().partition(b"\n")
        base = getattr(sys, "_base_executable", sys.executable)
        interpreter = Path(base).resolve()
        place = Path(self.twin[0])
        place.write_bytes(f"#!{interpreter} -IS\n".encode() + rest)
        place.chmod(0o700)

    def without_daemon(self) -> tuple[list[str], list[str]]:
        """Both clients, in a state folder where nobody listens."""
        elsewhere = self.stage.folder / "down"
        for folder in (elsewhere, elsewhere / "bin", elsewhere / "run"):
            folder.mkdir(mode=0o700, exist_ok=True)
        commands = []
        for command in (self.ask, self.twin):
            place = elsewhere / "bin" / Path(command[0]).name
            shutil.copy2(command[0], place)
            commands.append([str(place), *HOOK])
        return commands[0], commands[1]

    # ---- messages ----------------------------------------------------------------

    @property
    def newest(self) -> str:
        """The text of the message that was sent last."""
        return f"Message number {self._number}: shall we look at the parser together?"

    def send(self, name: str, characters: int = 0) -> int:
        """A new message straight to the server: when it was accepted (ns).

        As long as its text, or as `characters` if that is more.
        """
        self._number += 1
        text = self.newest.ljust(characters, ".")
        said = {"target": f"agent:{name}", "message": text}
        arguments = {"action": "send", **said}
        answer = self._http.post(
            "/api/external/v1/call", json={"name": "messages", "arguments": arguments}
        )
        accepted = time.perf_counter_ns()
        if answer.status_code != 200:
            raise NotSo(f"the server said {answer.status_code}: {answer.text}")
        return accepted

    async def arrive(self, count: int = 1) -> None:
        """Until so many messages wait in the journal."""
        with trio.fail_after(ARRIVES_S):
            while True:
                if self.waiting() == count:
                    return
                await trio.sleep(_LOOK_S)

    def offer_row(self) -> tuple[str, list[Any]]:
        """The journal's offer table, and its newest row."""
        journal = self._journal
        made = journal.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'offer'"
        ).fetchone()
        row = journal.execute(
            "SELECT * FROM offer ORDER BY rowid DESC LIMIT 1"
        ).fetchone()
        return made[0].replace(" REFERENCES attachment ON DELETE CASCADE", ""), [*row]

    def open(self) -> None:
        """Once server and bridge are up."""
        token = json.loads((self.stage.paths.server / "parent.json").read_bytes())
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(self.stage.socket)),
            base_url="http://server",
            headers={"Authorization": f"Bearer {token['token']}"},
        )
        place = f"file:{self.stage.paths.journal}?mode=ro"
        self._journal = sqlite3.connect(place, uri=True, isolation_level=None)

    def close(self) -> None:
        """Let the server and the journal go."""
        self._http.close()
        self._journal.close()

    def waiting(self) -> int:
        """How many messages of all attachments wait in the journal."""
        asked = "SELECT count(*) FROM delivery WHERE state = 'pending'"
        return int(self._journal.execute(asked).fetchone()[0])


@asynccontextmanager
async def open_workshop(folder: Path) -> AsyncIterator[Workshop]:
    """A server by itself, a bridge that uses it, and both hook clients."""
    folder.mkdir(mode=0o700)
    async with open_stage(folder, SystemClock()) as stage:
        module = ("-m", "tests.benchmarks.serve")
        stage.server_command = (sys.executable, "-P", *module)
        stage.environment["PYTHONPATH"] = str(ROOT)
        await stage.start_server()
        await stage.start_bridge()
        shop = Workshop(stage)
        shop.install_twin()
        shop.open()
        try:
            yield shop
        finally:
            shop.close()


def command(words: list[str], environment: Mapping[str, str] | None = None) -> Any:
    """One command as a worker wants it."""
    return {"command": words, "environment": dict(environment or {})}
