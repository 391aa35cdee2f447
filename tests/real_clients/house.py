"""The product on a scratch computer, used as a person and their scripts use it.

Owns the bridge that runs there, its installation in the project, the person's
terminal and the script agents. Promises that everything goes through the product's
own command, socket and hook client, that what is asked comes from processes with
no coding agent above them, and that all of it ends with the computer.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.journeys.rig.puppets import Puppet, puppet
from tests.journeys.rig.waiting import until_some
from tests.real_clients.rig.computer import Computer
from tests.real_clients.rig.processes import Finished, ProcessRow, end, process_row
from tests.real_clients.rig.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
_COMMAND = """\
#!/bin/sh
PYTHONPATH='{root}' exec '{python}' -P -m bridge "$@"
"""


class Script:
    """An attached script: it sends, and its turn ends when a test says so."""

    def __init__(self, house: House, process: Puppet, name: str) -> None:
        self._house = house
        self.process = process
        self.name = name

    async def send(self, text: str, to: str = "bob") -> dict[str, Any]:
        """A message that the server has accepted; its receipt."""
        sent = await self.verb("send", target=f"agent:{to}", message=text)
        assert sent["status"] == "accepted", sent
        return sent

    async def verb(self, verb: str, **said: Any) -> dict[str, Any]:
        """One verb of its own session."""
        request = {"verb": f"session_{verb}", "provider": "script", **said}
        answer = await self.process.do(
            "ask", state=str(self._house.state), request=request
        )
        assert isinstance(answer, dict)
        return answer

    async def mail(self) -> str:
        """End turns until one of them brings something."""

        async def stop() -> str:
            command = [str(self._house.ask), "hook", "script", "stop"]
            return str((await self.process.do("run", command=command))["out"])

        return await until_some(stop, f"mail for {self.name}")


class House:
    """The product on `computer`; `state` is its state folder."""

    def __init__(self, computer: Computer, things: AsyncExitStack) -> None:
        self.computer = computer
        self.state = computer.home / ".local" / "state" / "agentworks"
        self.ask = self.state / "bin" / "ask"
        self._things = things
        self._person: Puppet | None = None
        self._place_command(computer.folder / "bin")

    def _place_command(self, folder: Path) -> None:
        folder.mkdir()
        command = folder / "agentworks"
        command.write_text(_COMMAND.format(root=ROOT, python=sys.executable))
        command.chmod(0o700)
        path = self.computer.environment["PATH"]
        self.computer.environment["PATH"] = f"{folder}:{path}"

    # ---- the command ---------------------------------------------------------------

    async def command(self, *words: str, folder: Path | None = None) -> Finished:
        """`agentworks` with these words, as the person gives it in a terminal."""
        return await self.computer.run("agentworks", *words, folder=folder)

    async def do(self, *words: str) -> str:
        """The same; it must succeed. What it wrote."""
        done = await self.command(*words)
        assert done.code == 0, f"agentworks {' '.join(words)}: {done}"
        return done.out

    def choose(self, **settings: str) -> None:
        """Write the person's settings file; a bridge that runs does not see it."""
        folder = self.computer.home / ".config" / "agentworks"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / "config.json"
        file.touch(0o600)
        file.write_text(json.dumps(settings))

    # ---- the bridge ----------------------------------------------------------------

    async def start(self) -> None:
        """Start the bridge, unless it runs."""
        await self.do("bridge", "start")

    async def stop(self) -> None:
        """Stop the bridge in order."""
        await self.do("bridge", "stop")

    async def install(self, provider: str) -> None:
        """Install into the project where no chat of this provider runs yet."""
        await self.do("attach", "--provider", provider, "--yes")

    async def daemon(self) -> ProcessRow:
        """The bridge's process."""
        row = process_row((await self.person("hello"))["pid"])
        assert row is not None
        return row

    async def kill(self) -> None:
        """The bridge ends as if the power had gone."""
        daemon = await self.daemon()
        end(daemon, signal.SIGKILL)
        await wait_until(lambda: not daemon.is_alive(), "the end of the bridge")

    # ---- people and agents -----------------------------------------------------------

    async def person(self, verb: str, **said: Any) -> dict[str, Any]:
        """One call from the person's own terminal; raises Denied for a no."""
        if self._person is None:
            self._person = await self._puppet()
        request = {"verb": verb, **said}
        answer = await self._person.do("ask", state=str(self.state), request=request)
        assert isinstance(answer, dict)
        return answer

    async def row(self, name: str) -> dict[str, Any]:
        """What the person sees of one name; empty where there is none."""
        rows = (await self.person("agents", name=name))["agents"]
        return dict(rows[0]) if rows else {}

    async def until_row(self, name: str, **wanted: object) -> dict[str, Any]:
        """Wait until the person sees these values in the name's row."""

        async def look() -> dict[str, Any]:
            row = await self.row(name)
            return row if wanted.items() <= row.items() else {}

        return await until_some(look, f"{name} with {wanted}")

    async def quiet(
        self, name: str, *, more_than_s: float = 0, less_than_s: float = 1e9
    ) -> float:
        """Wait until its last contact is so long, or so short, ago; how long."""

        async def look() -> float | None:
            ago_s = float((await self.row(name))["last_contact_s"])
            return ago_s if more_than_s < ago_s < less_than_s else None

        ago_s = await until_some(look, f"the last contact of {name}")
        assert ago_s is not None
        return ago_s

    async def script(self, name: str = "alice") -> Script:
        """A script that the person has attached under this name."""
        process = await self._puppet()
        await self.person(
            "attach", name=name, provider="script", native_pid=process.pid
        )
        return Script(self, process, name)

    async def receipt(self, script: Script, message_id: str, delivery: str) -> None:
        """Wait until the sender knows that its message came this far."""

        async def look() -> bool:
            known = await script.verb("message_status", id=message_id)
            return bool(known.get("delivery") == delivery)

        await until_some(look, f"{message_id} {delivery}")

    async def _puppet(self) -> Puppet:
        environment = {**self.computer.environment, "PYTHONPATH": str(ROOT)}
        return await self._things.enter_async_context(puppet(environment))

    # ---- what was written ----------------------------------------------------------

    def log(self) -> list[dict[str, Any]]:
        """The bridge's log, a line for each event."""
        file = self.state / "log" / "bridge.log"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{")]


@asynccontextmanager
async def house_on(computer: Computer) -> AsyncIterator[House]:
    """A house whose scripts end with it; its bridge ends with the computer."""
    async with AsyncExitStack() as things:
        house = House(computer, things)
        try:
            yield house
        finally:
            _keep_log(house)


def _keep_log(house: House) -> None:
    log = house.state / "log" / "bridge.log"
    if log.exists():
        (house.computer.artefacts / "bridge.log").write_bytes(log.read_bytes())
