"""The real GitHub Copilot CLI on a scratch computer, offline against a fake model.

Owns its configuration and its two ways of running: one prompt with `-p`, and a
chat in a terminal. Promises that no dialog appears in a trusted project and that
no request leaves the computer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fakes.chat_completions_model import ChatCompletionsModel
from tests.real_clients.rig.computer import Computer
from tests.real_clients.rig.processes import Finished
from tests.real_clients.rig.terminal import Pane
from tests.real_clients.rig.waiting import wait_until


def _is_empty(screen: str) -> bool:
    """Does the composer wait with nothing in it?"""
    return "❯" in screen.splitlines()  # noqa: RUF001 - Copilot's own


def _is_loaded(screen: str) -> bool:
    """Are its hooks and tools there too?"""
    return _is_empty(screen) and "? help" in screen


class CopilotRig:
    """Copilot CLI as installed at `program`, with its fake model."""

    def __init__(self, computer: Computer, program: Path) -> None:
        self.computer = computer
        self.program = program
        self.model = ChatCompletionsModel(
            log=computer.artefacts / "copilot-model.jsonl"
        )
        self.home = computer.home / ".copilot"
        self.home.mkdir(exist_ok=True)
        self.variables = {
            "COPILOT_HOME": str(self.home),
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{self.model.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "not-a-key",
            "COPILOT_MODEL": "fake-1",
            "COPILOT_AUTO_UPDATE": "false",
        }
        self.trust(computer.project)

    def trust(self, folder: Path) -> None:
        """Answer "Do you trust this folder?" for a project, before Copilot starts."""
        path = self.home / "config.json"
        kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        trusted = [*kept.get("trustedFolders", ()), str(folder)]
        path.write_text(json.dumps({**kept, "trustedFolders": trusted}))

    async def run(self, prompt: str, *arguments: str) -> Finished:
        """One prompt with `-p`, to its end."""
        command = [str(self.program), *arguments, "-p", prompt]
        return await self.computer.run(*command, extra=self.variables)

    async def open_chat(
        self, name: str = "copilot", *arguments: str, folder: Path | None = None
    ) -> CopilotChat:
        """A chat in a terminal, ready for typing."""
        command = [str(self.program), *arguments]
        pane = self.computer.open_terminal(name, command, self.variables, folder)
        await wait_until(lambda: _is_loaded(pane.text()), "a Copilot composer", 40)
        return CopilotChat(pane)

    def session_id(self) -> str:
        """The chat that was open last, by Copilot's own record."""
        records = self.home.glob("session-state/*/events.jsonl")
        return max(records, key=lambda path: path.stat().st_mtime).parent.name

    async def stop(self) -> None:
        """End everything on the computer, then the fake model."""
        await self.computer.stop()
        self.model.close()


class CopilotChat:
    """One interactive Copilot CLI."""

    def __init__(self, pane: Pane) -> None:
        self.pane = pane
        self.process = pane.process()

    async def type(self, text: str) -> None:
        """Type one line and press Enter until the composer is empty.

        The first Enter may only take a suggestion, or count as part of the text.
        """
        self.pane.write(text)
        tail = text.strip()[-20:]
        await wait_until(
            lambda: tail in self.pane.text() and not _is_empty(self.pane.text()),
            f"{text!r} typed in {self.pane.name}",
        )
        await self.pane.press_until("Enter", _is_empty)

    async def ask(self, text: str, answer: str) -> None:
        """Type a prompt and wait for the answer on the screen."""
        await self.type(text)
        await self.pane.wait_text(answer)

    async def quit(self) -> None:
        """Leave as a person does, with /exit."""
        self.pane.write("/exit")
        await self.pane.press_until("Enter", lambda _: not self.process.is_alive())
