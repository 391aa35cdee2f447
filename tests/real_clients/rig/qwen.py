"""The real Qwen Code on a scratch computer, offline against a fake model.

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
from tests.real_clients.rig.programs import node_program
from tests.real_clients.rig.terminal import Pane
from tests.real_clients.rig.waiting import wait_until

_SETTINGS: dict[str, Any] = {
    "security": {
        "auth": {"selectedType": "openai"},
        "folderTrust": {"enabled": True},
    },
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    # Each of these is one more request to the model after a turn.
    "ui": {"hideTips": True, "enableFollowupSuggestions": False},
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
}


def _is_empty(screen: str) -> bool:
    """Does the composer wait with nothing in it?"""
    return "Type your message" in screen


class QwenRig:
    """Qwen Code as installed at `program`, a script, with its fake model."""

    def __init__(self, computer: Computer, program: Path) -> None:
        self.computer = computer
        self.command = [str(node_program()), str(program)]
        self.model = ChatCompletionsModel(log=computer.artefacts / "qwen-model.jsonl")
        self.home = computer.home / ".qwen"
        self.home.mkdir(exist_ok=True)
        (self.home / "settings.json").write_text(json.dumps(_SETTINGS))
        self.variables = {
            "OPENAI_API_KEY": "not-a-key",
            "OPENAI_BASE_URL": f"{self.model.url}/v1",
            "OPENAI_MODEL": "fake-1",
        }
        self.trust(computer.project)

    def trust(self, folder: Path) -> None:
        """Answer "Do you trust this folder?" for a project, before Qwen starts."""
        path = self.home / "trustedFolders.json"
        trusted = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**trusted, str(folder): "TRUST_FOLDER"}))

    def add_settings(self, settings: dict[str, Any]) -> None:
        """Merge top-level keys into the project's .qwen/settings.json."""
        path = self.computer.project / ".qwen" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        kept = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(kept | settings, indent=2))

    async def run(self, prompt: str, *arguments: str) -> Finished:
        """One prompt with `-p`, to its end."""
        command = [*self.command, *arguments, "-p", prompt]
        return await self.computer.run(*command, extra=self.variables)

    async def open_chat(
        self, name: str = "qwen", *arguments: str, folder: Path | None = None
    ) -> QwenChat:
        """A chat in a terminal, ready for typing."""
        command = [*self.command, *arguments]
        pane = self.computer.open_terminal(name, command, self.variables, folder)
        await wait_until(lambda: _is_empty(pane.text()), "a Qwen composer", 40)
        return QwenChat(pane)

    def session_id(self) -> str:
        """The chat that was open last, by Qwen's own record."""
        records = self.home.glob("projects/*/chats/*.jsonl")
        return max(records, key=lambda path: path.stat().st_mtime).stem

    async def stop(self) -> None:
        """End everything on the computer, then the fake model."""
        await self.computer.stop()
        self.model.close()


class QwenChat:
    """One interactive Qwen Code."""

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
        """Leave as a person does, with /quit."""
        self.pane.write("/quit")
        await self.pane.press_until("Enter", lambda _: not self.process.is_alive())
