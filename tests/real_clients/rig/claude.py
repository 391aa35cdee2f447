"""The real Claude Code on a scratch computer, offline against a fake model.

Owns its configuration, its two ways of running (a chat in a terminal, and
`-p --input-format stream-json` as a long-lived child), and its registration
file. Promises that no dialog appears and that no request leaves the computer.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.fakes.anthropic_model import AnthropicModel
from tests.real_clients.rig.computer import Computer
from tests.real_clients.rig.processes import Finished, ProcessRow, start_apart
from tests.real_clients.rig.session_socket import write_to_session
from tests.real_clients.rig.terminal import Pane
from tests.real_clients.rig.waiting import DEADLINE_S, wait_until

# Claude Code remembers the last 20 characters of an approved key.
_KEY = "sk-fake-000000000000000000"

# The default mode is "auto", whose check of tool calls asks the real service.
_MODE = ("--permission-mode", "default")


class ClaudeRig:
    """Claude Code as installed at `program`, with its fake model."""

    def __init__(self, computer: Computer, program: Path) -> None:
        self.computer = computer
        self.program = program
        self.model = AnthropicModel(log=computer.artefacts / "claude-model.jsonl")
        self.variables = {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": _KEY,
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        self.trust(computer.project)

    def trust(self, folder: Path) -> None:
        """Answer Claude's first-run dialogs for a project, before it starts."""
        path = self.computer.home / ".claude.json"
        config: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        config |= {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": "2.1.332",
            "theme": "dark",
            "numStartups": 5,
            "autoUpdates": False,
            "customApiKeyResponses": {"approved": [_KEY[-20:]], "rejected": []},
        }
        trusted = {"hasTrustDialogAccepted": True, "allowedTools": []}
        trusted["hasCompletedProjectOnboarding"] = True
        config.setdefault("projects", {})[str(folder)] = trusted
        path.write_text(json.dumps(config))

    def add_settings(self, settings: dict[str, Any]) -> None:
        """Merge top-level keys into the project's .claude/settings.local.json."""
        path = self.computer.project / ".claude" / "settings.local.json"
        path.parent.mkdir(exist_ok=True)
        kept = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(kept | settings, indent=2))

    async def open_chat(
        self, name: str = "chat", *arguments: str, folder: Path | None = None
    ) -> ClaudeChat:
        """An interactive chat in a terminal, ready for typing."""
        log = self.computer.record(name).with_suffix(".debug")
        command = [str(self.program), *_MODE, "--debug-file", str(log), *arguments]
        pane = self.computer.open_terminal(name, command, self.variables, folder)
        chat = ClaudeChat(self, pane, log)
        await chat.wait_idle()
        return chat

    async def open_stream(self, name: str = "stream", *arguments: str) -> ClaudeStream:
        """A `-p --input-format stream-json` child, alive until closed."""
        pipe_out, pipe_in = os.pipe()
        record = self.computer.record(name)
        log = record.with_suffix(".debug")
        command = [str(self.program), *_MODE, "-p", "--verbose"]
        command += ["--debug-file", str(log)]
        for direction in ("--input-format", "--output-format"):
            command += [direction, "stream-json"]
        environment = {**self.computer.environment, **self.variables}
        try:
            process = await start_apart(
                [*command, *arguments],
                environment,
                self.computer.project,
                record,
                stdin=pipe_out,
            )
        finally:
            os.close(pipe_out)
        return ClaudeStream(self, process, pipe_in, record.with_suffix(".out"), log)

    async def run(self, prompt: str, *arguments: str) -> Finished:
        """One `-p` prompt to its end."""
        command = [str(self.program), *_MODE, "-p", prompt, *arguments]
        return await self.computer.run(*command, extra=self.variables)

    async def stop(self) -> None:
        """End everything on the computer, then the fake model."""
        await self.computer.stop()
        self.model.close()

    def registration(self, pid: int) -> dict[str, Any]:
        """The session file that Claude keeps for its process, or {}."""
        path = self.computer.home / ".claude" / "sessions" / f"{pid}.json"
        try:
            return dict(json.loads(path.read_text()))
        except (OSError, ValueError):  # absent, or just being written
            return {}


class ClaudeChat:
    """One interactive Claude Code."""

    def __init__(self, rig: ClaudeRig, pane: Pane, debug_log: Path) -> None:
        self.rig = rig
        self.pane = pane
        self.debug_log = debug_log
        self.process: ProcessRow = pane.process()

    @property
    def registration(self) -> dict[str, Any]:
        """What the registration file says now."""
        return self.rig.registration(self.process.pid)

    @property
    def session_id(self) -> str:
        """The current session; `/clear`, `/resume` and `/branch` change it."""
        return str(self.registration.get("sessionId", ""))

    @property
    def turns_ended(self) -> int:
        """How many turns of this session are over, their Stop hooks included."""
        projects = self.rig.computer.home / ".claude" / "projects"
        return sum(
            transcript.read_text(errors="replace").count('"subtype":"turn_duration"')
            for transcript in projects.glob(f"*/{self.session_id}.jsonl")
        )

    async def type(self, text: str) -> None:
        """Type one line and press Enter."""
        await self.pane.type(text)

    async def wait_idle(self, deadline_s: float = DEADLINE_S) -> None:
        """Until Claude itself says that it waits for a prompt."""
        await wait_until(
            lambda: self.registration.get("status") == "idle",
            f"an idle Claude in {self.pane.name}",
            deadline_s,
        )

    async def ask(self, text: str, answer: str) -> None:
        """Type a prompt, then wait for the answer on the screen and for idle."""
        await self.type(text)
        await self.pane.wait_text(answer)
        await self.wait_idle()

    def write_to_socket(self, text: str) -> None:
        """Put a text into the chat from outside, as any program of the person can."""
        sessions = self.rig.computer.home / ".claude" / "sessions"
        write_to_session(sessions, self.registration, text)

    async def quit(self) -> None:
        """Leave as a person does, with /exit."""
        await self.type("/exit")
        await wait_until(lambda: not self.process.is_alive(), "the end of the chat")


class ClaudeStream:
    """One `-p` Claude Code that takes prompts as JSON lines on its stdin."""

    def __init__(
        self,
        rig: ClaudeRig,
        process: ProcessRow,
        pipe: int,
        output: Path,
        debug_log: Path,
    ) -> None:
        self.process = process
        self.debug_log = debug_log
        self._rig = rig
        self._pipe = pipe
        self._output = output

    @property
    def session_id(self) -> str:
        """The session that it has open now."""
        return str(self._rig.registration(self.process.pid).get("sessionId", ""))

    def records(self, kind: str = "") -> list[dict[str, Any]]:
        """Every line it has written, or those of one `type`."""
        whole = self._output.read_text().rpartition("\n")[0]
        lines = [json.loads(line) for line in whole.splitlines() if line]
        return [line for line in lines if not kind or line["type"] == kind]

    def send(self, text: str) -> None:
        """Write one prompt; does not wait."""
        message = {"role": "user", "content": text}
        line = json.dumps({"type": "user", "message": message}) + "\n"
        os.write(self._pipe, line.encode())

    async def ask(self, text: str, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """Write one prompt and wait for its result line."""
        known = len(self.records("result"))
        self.send(text)
        results = await wait_until(
            lambda: self.records("result")[known:], f"a result for {text!r}", deadline_s
        )
        return results[0]

    async def close(self) -> None:
        """End its input and wait for its end."""
        os.close(self._pipe)
        await wait_until(lambda: not self.process.is_alive(), "the end of the stream")
