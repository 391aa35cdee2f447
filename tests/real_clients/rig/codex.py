"""The real Codex on a scratch computer, offline against a fake model.

Owns its configuration and its three ways of running: `codex exec`, a chat in a
terminal with its own server (`--no-daemon`), and chats of the daemon that all
terminals of one CODEX_HOME share. Promises that no dialog appears in a trusted
project and that no request leaves the computer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.fakes.openai_model import OpenAIModel
from tests.real_clients.rig.computer import Computer
from tests.real_clients.rig.processes import (
    ProcessRow,
    arguments_of,
    processes_of,
)
from tests.real_clients.rig.terminal import Pane
from tests.real_clients.rig.waiting import wait_until

# Hooks run only after the person reviewed them; tests have no person.
BYPASS_HOOK_TRUST = "--dangerously-bypass-hook-trust"

_CONFIG = """\
model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false
disable_paste_burst = true

[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
"""

_TRUST = '\n[projects."{folder}"]\ntrust_level = "trusted"\n'


class CodexRun(Struct, frozen=True):
    """One `codex exec` that ended; `records` are its JSON lines."""

    code: int
    records: list[dict[str, Any]]
    err: str

    @property
    def thread_id(self) -> str:
        """The thread it ran in."""
        started = (r for r in self.records if r["type"] == "thread.started")
        return str(next(started)["thread_id"])


def _is_ready(screen: str) -> bool:
    return "Ask Codex" in screen and "loading" not in screen


class CodexRig:
    """Codex as installed at `program`, with its fake model."""

    def __init__(self, computer: Computer, program: Path) -> None:
        self.computer = computer
        self.program = program
        self.model = OpenAIModel(log=computer.artefacts / "codex-model.jsonl")
        self.codex_home = computer.home / ".codex"
        self.codex_home.mkdir(exist_ok=True)
        self._config = self.codex_home / "config.toml"
        self._config.write_text(_CONFIG.format(url=self.model.url))
        self.variables = {"CODEX_HOME": str(self.codex_home)}
        self._sockets: list[Path] = []
        self.trust(computer.project)

    def trust(self, folder: Path) -> None:
        """Answer "Trust this folder?" for a project, before Codex starts."""
        self.add_config(_TRUST.format(folder=folder))

    def add_config(self, toml: str) -> None:
        """Append tables to $CODEX_HOME/config.toml, the person's own file."""
        with self._config.open("a") as config:
            config.write(toml)

    def write_hooks(self, groups: dict[str, list[dict[str, Any]]]) -> None:
        """Write the project's .codex/hooks.json: event name to hook groups."""
        path = self.computer.project / ".codex" / "hooks.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"hooks": groups}, indent=2))

    async def run(
        self, prompt: str, *arguments: str, resume: str = "", trust_hooks: bool = True
    ) -> CodexRun:
        """One `codex exec` to its end; `resume` continues a thread."""
        bypass = [BYPASS_HOOK_TRUST] if trust_hooks else []
        command = [str(self.program), "exec", "--skip-git-repo-check", "--json"]
        command += [*bypass, *arguments]
        command += ["resume", resume, prompt] if resume else [prompt]
        done = await self.computer.run(*command, extra=self.variables)
        lines = [line for line in done.out.splitlines() if line.startswith("{")]
        return CodexRun(done.code, [json.loads(line) for line in lines], done.err)

    async def open_chat(
        self,
        name: str = "codex",
        *arguments: str,
        daemon: bool = False,
        review: bool = False,
        folder: Path | None = None,
    ) -> CodexChat:
        """A chat in a terminal, ready for typing.

        With `daemon` its server is the one that all terminals of this home
        share; otherwise it is the chat's own process. `review` waits for the
        question about new hooks and answers it with "Trust all"; with neither,
        the trust of hooks is bypassed.
        """
        # The bypass makes Codex leave the shared daemon alone.
        bypass = [] if daemon or review else [BYPASS_HOOK_TRUST]
        alone = [] if daemon else ["--no-daemon"]
        command = [str(self.program), *alone, *bypass, *arguments]
        pane = self.computer.open_terminal(name, command, self.variables, folder)
        if review:
            await pane.wait_text("Hooks need review", 40)
            mark = "› 2. Trust all"  # noqa: RUF001 - Codex's own
            await pane.press_until("2", lambda screen: mark in screen)
            await pane.press_until("Enter", lambda screen: mark not in screen)
        await wait_until(lambda: _is_ready(pane.text()), "a Codex composer", 40)
        return CodexChat(name, pane)

    async def stop(self) -> None:
        """End everything on the computer, and the daemon's files outside it."""
        links = [self.daemon_socket, *self._sockets]
        targets = [link.readlink() for link in links if link.is_symlink()]
        await self.computer.stop()
        self.model.close()
        for target in targets:
            target.unlink(missing_ok=True)
            target.with_suffix(".lock").unlink(missing_ok=True)

    def settings(self) -> str:
        """$CODEX_HOME/config.toml as it is now, the person's trust included."""
        return self._config.read_text()

    @property
    def daemon_socket(self) -> Path:
        """Where the shared app-server of this home listens."""
        return self.codex_home / "app-server-control" / "app-server-control.sock"

    async def serve(self, name: str) -> tuple[ProcessRow, Path]:
        """An app-server of the person's own; its process and its socket."""
        path = self.computer.folder / f"{name}.sock"
        command = [str(self.program), "app-server", "--listen", f"unix://{path}"]
        pane = self.computer.open_terminal(f"{name}-server", command, self.variables)
        await wait_until(path.exists, f"the app-server {name}")
        self._sockets.append(path)
        return pane.process(), path

    def daemon(self) -> ProcessRow | None:
        """The shared app-server of this home, if one runs."""
        for row in processes_of(self.computer.home):
            if "--managed-daemon" in arguments_of(row.pid):
                return row
        return None


class CodexChat:
    """One interactive Codex; `name` is its terminal's."""

    def __init__(self, name: str, pane: Pane) -> None:
        self.name = name
        self.pane = pane
        self.process = pane.process()

    async def type(self, text: str) -> None:
        """Type one line and press Enter."""
        await self.pane.type(text)

    async def ask(self, text: str, answer: str) -> None:
        """Type a prompt and wait for the answer on the screen."""
        await self.type(text)
        await self.pane.wait_text(answer)

    async def quit(self) -> None:
        """Leave as a person does, with /quit."""
        await self.type("/quit")
        await wait_until(lambda: not self.process.is_alive(), "the end of the chat")
