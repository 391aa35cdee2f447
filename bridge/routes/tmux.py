"""One fixed line, typed into the very terminal pane of a chat that nothing wakes.

Owns that line and how the pane is looked at. Promises that nothing else is ever
typed, no text of any message least of all; that pane, server and program are
verified anew each time; and that nothing is typed where something stands already:
a half-typed prompt, a scrolled-back screen, a question that waits for a key.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import trio
from msgspec import Struct

from bridge.errors import BridgeError
from bridge.routes.unix_socket import vetted

LINE = "read your AgentWorks mailbox with agent_message_read"
FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin")
DEADLINE_S = 2.0
# A host that takes fast typing for a paste takes an Enter right after it for text.
_PAUSE_S = 0.5
_ASKED = "#{pane_id} #{pane_pid} #{pane_dead} #{pane_in_mode} #{cursor_x} #{cursor_y}"
# What stands before an empty prompt: a frame perhaps, and the host's own mark.
_EMPTY_PROMPT = re.compile("\\s*[\u2502\u2503|]?\\s*[\u276f\u203a\u00bb>\u258c]\\s*")

HasProgram = Callable[[int], bool]


class _State(Struct, frozen=True):
    pid: int
    column: int
    row: int


class TmuxPane:
    """One pane of one tmux server; `pane` is tmux's own id, such as `%3`."""

    def __init__(
        self, socket: str, pane: str, folders: Sequence[str] = FOLDERS
    ) -> None:
        self._socket = socket
        self._pane = pane
        self._folders = [Path(folder) for folder in folders]

    async def type_line(self, has_program: HasProgram) -> str:
        """Type the line and enter it; empty, or why that was not done.

        `has_program` says of the pane's process whether the chat's program runs
        there.
        """
        try:
            with trio.fail_after(DEADLINE_S + _PAUSE_S):
                return await self._typed(has_program)
        except trio.TooSlowError:
            return "tmux did not answer"
        except (BridgeError, OSError) as error:
            return getattr(error, "message", "") or str(error)

    async def _typed(self, has_program: HasProgram) -> str:
        state = await self._state()
        if state is None:
            return "the pane is not there, or shows something else"
        if not has_program(state.pid):
            return "another program runs in the pane"
        before = await self._line(state)
        if _EMPTY_PROMPT.fullmatch(before[: state.column]) is None:
            return "something is typed there already, or no prompt is shown"
        await self._tmux("send-keys", "-t", self._pane, "-l", LINE)
        await trio.sleep(_PAUSE_S)
        after = await self._state()
        if after is None or LINE not in await self._line(after):
            return "the line did not come to stand in the prompt"
        await self._tmux("send-keys", "-t", self._pane, "Enter")
        return ""

    async def _state(self) -> _State | None:
        said = await self._tmux("display-message", "-p", "-t", self._pane, _ASKED)
        pane, *numbers = said.split() or [""]
        if (
            pane != self._pane
            or len(numbers) != 5
            or not all(map(str.isdecimal, numbers))
        ):
            return None
        pid, is_dead, in_mode, column, row = map(int, numbers)
        return None if is_dead or in_mode else _State(pid, column, row)

    async def _line(self, state: _State) -> str:
        row = str(state.row)
        place = ("-t", self._pane, "-S", row, "-E", row)
        return (await self._tmux("capture-pane", "-p", *place)).rstrip("\n")

    async def _tmux(self, *words: str) -> str:
        """One tmux command at exactly this server; what it printed."""
        done = await trio.run_process(
            [self._program(), "-u", "-S", vetted(self._socket), *words],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            capture_stdout=True,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd="/",
            check=False,
        )
        return bytes(done.stdout).decode(errors="replace") or "-"

    def _program(self) -> str:
        for folder in self._folders:
            if (folder / "tmux").is_file():
                return str(folder / "tmux")
        raise FileNotFoundError("there is no tmux")
