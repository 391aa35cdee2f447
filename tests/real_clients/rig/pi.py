"""The real Pi on a scratch computer, offline against a fake model.

Owns its configuration and its chats in a terminal. Promises that no dialog
appears, that the project is trusted (the person's own answer, given before), and
that no request leaves the computer.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.fakes.chat_completions_model import ChatCompletionsModel
from tests.real_clients.rig.computer import Computer
from tests.real_clients.rig.terminal import Pane
from tests.real_clients.rig.waiting import wait_until

_OFFLINE = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}
_MODEL = {
    "id": "fake-1",
    "name": "Fake",
    "reasoning": False,
    "input": ["text"],
    "contextWindow": 128_000,
    "maxTokens": 4096,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
}


class PiRig:
    """Pi as installed at `program` (its script), run by `node`, with its fake model."""

    def __init__(self, computer: Computer, node: Path, program: Path) -> None:
        self.computer = computer
        self.command = [str(node), str(program)]
        self.model = ChatCompletionsModel(log=computer.artefacts / "pi-model.jsonl")
        self.agent = computer.home / ".pi" / "agent"
        self.agent.mkdir(parents=True)
        self._write("models.json", {"providers": {"fake": self._provider()}})
        settings = {"defaultProvider": "fake", "defaultModel": "fake-1"}
        self._write("settings.json", {**settings, "quietStartup": True})
        self.trust(computer.project)

    def trust(self, folder: Path) -> None:
        """Answer "Trust this folder?" for a project, before Pi starts."""
        self._write("trust.json", {str(folder): True})

    def _provider(self) -> dict[str, object]:
        address = {"baseUrl": f"{self.model.url}/v1", "apiKey": "not-a-key"}
        return {**address, "api": "openai-completions", "models": [_MODEL]}

    def _write(self, name: str, document: object) -> None:
        (self.agent / name).write_text(json.dumps(document))

    async def open_chat(self, name: str = "pi", *arguments: str) -> PiChat:
        """A chat in a terminal, ready for typing."""
        command = [*self.command, *arguments]
        pane = self.computer.open_terminal(name, command, _OFFLINE)
        await wait_until(lambda: "fake-1" in pane.text(), "a Pi composer", 40)
        return PiChat(self, pane)

    async def stop(self) -> None:
        """End everything on the computer, then the fake model."""
        await self.computer.stop()
        self.model.close()


class PiChat:
    """One interactive Pi."""

    def __init__(self, rig: PiRig, pane: Pane) -> None:
        self.rig = rig
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
