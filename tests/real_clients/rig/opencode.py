"""The real opencode on a scratch computer, offline against a fake model.

Owns its configuration and its chats in a terminal. Promises that no dialog
appears and that no request leaves the computer.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.fakes.chat_completions_model import ChatCompletionsModel
from tests.real_clients.rig.computer import Computer
from tests.real_clients.rig.terminal import Pane
from tests.real_clients.rig.waiting import wait_until

_OFFLINE = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    # It would fetch what plugins may import into every folder of configuration.
    "npm_config_registry": "http://127.0.0.1:9/",
    "npm_config_fetch_retries": "0",
}
# Its start and its first chat cost seconds of both processors.
SLOW_S = 60.0
_LIMIT = {"context": 128_000, "output": 4096}


class OpencodeRig:
    """opencode as installed at `program`, with its fake model."""

    def __init__(self, computer: Computer, program: Path) -> None:
        self.computer = computer
        self.program = program
        log = computer.artefacts / "opencode-model.jsonl"
        self.model = ChatCompletionsModel(log=log)
        folder = computer.home / ".config" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_text(json.dumps(self._config()))

    def _config(self) -> dict[str, object]:
        address = {"baseURL": f"{self.model.url}/v1", "apiKey": "not-a-key"}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": address,
            "models": {"fake-1": {"name": "Fake 1", "limit": _LIMIT}},
        }
        return {
            "model": "fake/fake-1",
            "small_model": "fake/fake-1",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"fake": provider},
        }

    async def open_chat(self, name: str = "opencode", *arguments: str) -> OpencodeChat:
        """A chat in a terminal, ready for typing."""
        command = [str(self.program), *arguments]
        pane = self.computer.open_terminal(name, command, _OFFLINE)
        await wait_until(
            lambda: "Fake 1" in pane.text(), "an opencode composer", 3 * SLOW_S
        )
        return OpencodeChat(self, pane)

    async def stop(self) -> None:
        """End everything on the computer, then the fake model."""
        await self.computer.stop()
        self.model.close()


class OpencodeChat:
    """One interactive opencode; its process may have several chats."""

    def __init__(self, rig: OpencodeRig, pane: Pane) -> None:
        self.rig = rig
        self.pane = pane
        self.process = pane.process()

    async def type(self, text: str) -> None:
        """Type one line and press Enter."""
        await self.pane.type(text, SLOW_S)

    async def wait_chat(self) -> None:
        """Until the start screen has gone, which takes along what is typed in it."""
        await self.pane.wait_text("Context", SLOW_S)

    async def ask(self, text: str, answer: str) -> None:
        """Type a prompt and wait for the answer on the screen."""
        await self.type(text)
        await self.pane.wait_text(answer, SLOW_S)
