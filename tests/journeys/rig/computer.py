"""A scratch computer with a bridge: its folders, daemon, server and people.

Owns everything that is started on it and ends it. Promises that the person's
calls come from a process that nothing of a coding agent stands above, and that
an attached script is a living process of its own; and that every message carries
a canary, which the reader of an answer does not see.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError
from bridge.local.client import call
from bridge.local.requests import Hello
from bridge.paths import Paths
from tests.journeys.rig.canary import Canaries, marked, unmarked
from tests.journeys.rig.puppets import Puppet, puppet
from tests.journeys.rig.running import Running, running
from tests.journeys.rig.waiting import until_some

ROOT = Path(__file__).resolve().parents[3]
RIG = Path(__file__).resolve().parent


class Agent:
    """A script that the person may attach: it asks for its mail and answers it."""

    def __init__(self, computer: Computer, process: Puppet) -> None:
        self._computer = computer
        self.process = process
        self.name = ""

    async def stop(self) -> str:
        """Its turn ends: what its Stop hook prints."""
        done = await self.process.do("run", command=self._hook)
        assert done["exit"] == 0
        return str(done["out"])

    async def stop_at_once(self, times: int) -> list[str]:
        """As if its hook was installed many times: what each prints."""
        together = await self.process.do(
            "run_together", command=self._hook, times=times
        )
        return list(together)

    async def hold(self) -> str:
        """As mail, but its hook never says that it printed."""

        async def look() -> str:
            state = str(self._computer.state)
            return str(await self.process.do("hold", state=state))

        return await until_some(look, f"mail for {self.name}")

    async def drop(self) -> None:
        """The hook of `hold` dies."""
        await self.process.do("drop")

    @property
    def _hook(self) -> list[str]:
        return [str(self._computer.paths.bin / "ask"), "hook", "script", "stop"]

    async def mail(self) -> str:
        """End turns until one of them brings something."""
        return await until_some(self.stop, f"mail for {self.name}")

    async def ask(self, verb: str, **said: Any) -> Any:
        """A call of this process itself."""
        request = {"verb": verb, **marked(said)}
        return unmarked(
            await self.process.do(
                "ask", state=str(self._computer.state), request=request
            )
        )

    async def verb(self, verb: str, **said: Any) -> Any:
        """One verb of its own session."""
        return await self.ask(f"session_{verb}", provider="script", **said)

    async def send(self, target: str, text: str, submission_id: str = "") -> Any:
        """A message to `agent:TARGET`."""
        return await self.verb(
            "send",
            target=f"agent:{target}",
            message=text,
            submission_id=submission_id,
        )


class Computer:
    """One person's computer below `folder`, with at most one bridge."""

    def __init__(
        self,
        folder: Path,
        ask: Path,
        things: AsyncExitStack,
        person: Puppet | None = None,
    ) -> None:
        self.home = folder / "home"
        self.state = folder / "state"
        self.records = folder / "records"
        for made in (self.home, self.records):
            made.mkdir(mode=0o700)
        config = self.home / ".config" / "agentworks"
        self.paths = Paths(config, self.state, config / "config.json")
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "AGENTWORKS_STATE": str(self.state),
        }
        self.server_socket = folder / "server.sock"
        self.canaries = Canaries(self.paths, folder)
        self._ask = ask
        self._things = things
        self._person = person

    # ---- programs ----------------------------------------------------------------

    def install(self) -> None:
        """The hook client, where the person's scripts find it."""
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.paths.bin.mkdir(mode=0o700, exist_ok=True)
        if not (self.paths.bin / "ask").exists():
            (self.paths.bin / "ask").hardlink_to(self._ask)

    async def start_bridge(self, server: str = "") -> Running:
        """The daemon, with its embedded server or with another one, answering."""
        daemon = await self.launch_bridge(server)
        await daemon.until(self.answers, "an answer to hello")
        return daemon

    async def launch_bridge(
        self, server: str = "", words: Sequence[str] = ()
    ) -> Running:
        """The daemon as just started: it may still refuse to serve."""
        self.install()
        chosen = ["--server", server] if server else []
        command = ["-m", "bridge", *chosen, "bridge", "run", *words]
        return await self.run(command, "bridge")

    async def start_server(self, **limits: float) -> Running:
        """A server alone on its socket, with the login for our bridge."""
        self.paths.prepare()
        database = self.paths.server / "server.sqlite3"
        words = [str(self.server_socket), str(database), json.dumps(limits)]
        server = await self.run([str(RIG / "run_server.py"), *words], "server")
        await server.until(self._server_serves, "the server's login")
        return server

    async def start_bridge_alone(self) -> Running:
        """The daemon with the server that start_server started."""
        return await self.start_bridge(f"unix://{self.server_socket}")

    def answers(self) -> bool:
        """Somebody says hello."""
        try:
            call(self.paths, Hello())
        except BridgeError:
            return False
        return True

    def _server_serves(self) -> bool:
        return self.server_socket.exists() and self.paths.parent_token.exists()

    async def run(self, command: list[str], name: str) -> Running:
        """A program of our interpreter with this person's environment."""
        number = len(list(self.records.iterdir()))
        record = self.records / f"{number:02d}-{name}"
        return await self._things.enter_async_context(
            running(command, self.environment, record)
        )

    # ---- people and agents ---------------------------------------------------------

    async def person(self, verb: str, **said: Any) -> Any:
        """A call from the person's own terminal; raises Denied for a no."""
        if self._person is None:
            self._person = await self._puppet()
        request = {"verb": verb, **marked(said)}
        return unmarked(
            await self._person.do("ask", state=str(self.state), request=request)
        )

    async def agent(self) -> Agent:
        """A script that nobody has attached yet."""
        return Agent(self, await self._puppet())

    async def attached(self, name: str) -> Agent:
        """A script that the person has just attached under this name."""
        agent = await self.agent()
        await self.attach(agent, name)
        return agent

    async def settled(self, name: str) -> Agent:
        """As attached, and its setup text was taken."""
        agent = await self.attached(name)
        await agent.mail()
        return agent

    async def attach(self, agent: Agent, name: str = "") -> Any:
        """The person attaches it."""
        done = await self.person(
            "attach", name=name, provider="script", native_pid=agent.process.pid
        )
        agent.name = done["name"]
        self.canaries.learn()
        return done

    async def row(self, name: str) -> dict[str, Any] | None:
        """What the person sees of one name."""
        rows = (await self.person("agents", name=name))["agents"]
        return rows[0] if rows else None

    async def until_row(self, name: str, **wanted: object) -> dict[str, Any]:
        """Wait until the person sees these values in the name's row."""

        async def look() -> dict[str, Any]:
            row = await self.row(name) or {}
            return row if wanted.items() <= row.items() else {}

        return await until_some(look, f"{name} with {wanted}")

    async def until_gone(self, name: str) -> None:
        """Wait until the person sees no such name any more."""

        async def is_gone() -> bool:
            return await self.row(name) is None

        await until_some(is_gone, f"the end of {name}'s detach")

    async def _puppet(self) -> Puppet:
        return await self._things.enter_async_context(puppet(self.environment))


@asynccontextmanager
async def computer_in(folder: Path, ask: Path) -> AsyncIterator[Computer]:
    """A scratch computer; whatever runs on it ends with the test."""
    async with AsyncExitStack() as things:
        yield Computer(folder, ask, things)
