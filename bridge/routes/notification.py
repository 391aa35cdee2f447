"""A line on the person's desktop: mail waits for a chat that nothing wakes.

Owns the programs that show one and their arguments. Promises that it holds an
agent's name and nothing of any message, that no text becomes part of a command or a
script, that a program is only taken from the system's own folders, that it is given
no more of our environment than it needs to find the desktop, and that whatever goes
wrong is one sentence and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import trio

DEADLINE_S = 2.0
FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin")
_TITLE = "AgentWorks"
_KEPT = (
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "LANG",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
)
# The text comes as an argument: an AppleScript made of it could be made to do more.
_SCRIPT = (
    "on run argv",
    'display notification (item 1 of argv) with title "AgentWorks"',
    "end run",
)


class Desktop:
    """Shows notifications; `folders` are searched for the programs, in order."""

    def __init__(
        self,
        environment: Mapping[str, str],
        folders: Sequence[str] = FOLDERS,
        platform: str = sys.platform,
    ) -> None:
        self._folders = [Path(folder) for folder in folders]
        self._is_mac = platform == "darwin"
        kept = {name: environment[name] for name in _KEPT if name in environment}
        self._environment = {"PATH": ":".join(folders), **kept}

    async def show(self, agent: str, link: str = "") -> str:
        """Say that messages wait for `agent`; empty, or why it was not shown.

        `link` opens its chat where the desktop can, and may be empty.
        """
        command = self._command(f"Messages wait for {agent}", link)
        if command is None:
            return "no program that shows notifications was found"
        with trio.move_on_after(DEADLINE_S):
            try:
                done = await trio.run_process(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=self._environment,
                    cwd="/",
                    check=False,
                )
            except OSError as error:
                return error.strerror or "its program could not be started"
            program = Path(command[0]).name
            return "" if done.returncode == 0 else f"{program} could not show it"
        return "it took too long"

    def _command(self, text: str, link: str) -> list[str] | None:
        if self._is_mac:
            return self._mac(text, link)
        notify_send = self._program("notify-send")
        if notify_send is not None:
            return [notify_send, f"--app-name={_TITLE}", "--", _TITLE, text]
        gdbus = self._program("gdbus")
        return None if gdbus is None else _over_dbus(gdbus, text)

    def _mac(self, text: str, link: str) -> list[str] | None:
        notifier = self._program("terminal-notifier")
        if notifier is not None:
            opens = ["-open", link] if link else []
            return [notifier, "-title", _TITLE, "-message", text, *opens]
        osascript = self._program("osascript")
        if osascript is None:
            return None
        lines = [word for line in _SCRIPT for word in ("-e", line)]
        return [osascript, *lines, "--", text]

    def _program(self, name: str) -> str | None:
        for folder in self._folders:
            if (folder / name).is_file():
                return str(folder / name)
        return None


def _over_dbus(gdbus: str, text: str) -> list[str]:
    call = ["--method", "org.freedesktop.Notifications.Notify"]
    place = ["--object-path", "/org/freedesktop/Notifications"]
    name = ["--dest", "org.freedesktop.Notifications"]
    # A bare -1 would be taken for an option of gdbus, which then calls nobody.
    arguments = [_TITLE, "0", "", _TITLE, text, "[]", "{}", "int32 -1"]
    return [gdbus, "call", "--session", *name, *place, *call, *arguments]
