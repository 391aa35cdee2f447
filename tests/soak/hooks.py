"""How the turns of a worker end: with the real hook client, or by hand, or badly.

Owns the ways a hook can end and what is noted of it. Promises that a hook which
was cut off is noted as such before it is cut, so that the ledger can tell who
had a reason to be unsure.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Protocol

from tests.soak import door
from tests.soak.dice import Dice
from tests.soak.offers import Printed, printed

HOOK_ENDS_S = 30.0
_KILLED_WITHIN_S = 0.015
_SLOW_S = 0.8


class Notebook(Protocol):
    """Where it is noted."""

    def now(self) -> float:
        """Seconds on the clock that all processes share."""
        ...

    def write(self, what: str, **said: object) -> None:
        """One line."""
        ...


class Hooks:
    """The Stop hooks of this very process."""

    KINDS: ClassVar = {
        "plain": 70.0,  # the hook client, to its end
        "killed": 8.0,  # the hook client, killed at some moment
        "slow": 12.0,  # by hand: takes its time, then says printed
        "dropped": 3.0,  # by hand: took the text and died without a word
        "waited": 3.0,  # by hand: died after `wait`, before `print`
        "refused": 4.0,  # by hand: could not write a byte, and says so
    }

    def __init__(self, state: Path, dice: Dice, notes: Notebook) -> None:
        self._ask = [str(state / "bin" / "ask"), "hook", "script", "stop"]
        self._dice = dice
        self._notes = notes

    def end_turn(self, kind: str) -> Printed | None:
        """What this agent was shown, None for nothing."""
        self._notes.write("hooking", kind=kind)
        began = self._notes.now()
        if kind == "plain":
            text, ended = self._run()
        elif kind == "killed":
            text, ended = self._kill(self._dice.between(0, _KILLED_WITHIN_S))
        else:
            text, ended = self._by_hand(kind)
        self._note(kind, began, text, ended)
        return printed(text) if kind in ("plain", "killed", "slow") else None

    def forge(self, victim: str) -> None:
        """Speak as another provider's hook; nothing may come of it."""
        said = {"session_id": victim, "hook_event_name": "Stop", "prompt": ""}
        provider = self._dice.one_of(["claude", "codex", "nobody"])
        began, text = self._notes.now(), ""
        with suppress(door.Unanswered):
            text = self._converse(provider, "Stop", json.dumps(said).encode(), "forged")
        self._note("forged", began, text, "")

    def _note(self, kind: str, began: float, text: str, ended: str) -> None:
        self._notes.write("hook", kind=kind, began=began, text=text, ended=ended)

    # ---- the hook client -----------------------------------------------------------

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._ask, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={}
        )

    def _run(self) -> tuple[str, str]:
        hook = self._start()
        try:
            out = hook.communicate(timeout=HOOK_ENDS_S)[0]
        except subprocess.TimeoutExpired:
            hook.kill()
            return hook.communicate()[0].decode(), "hung"
        return out.decode(), f"exit {hook.returncode}"

    def _kill(self, after_s: float) -> tuple[str, str]:
        hook = self._start()
        time.sleep(after_s)
        os.kill(hook.pid, signal.SIGKILL)
        return hook.communicate()[0].decode(), f"exit {hook.returncode}"

    # ---- by hand -------------------------------------------------------------------

    def _by_hand(self, kind: str) -> tuple[str, str]:
        try:
            return self._converse("script", "stop", b"", kind), ""
        except door.Unanswered as error:
            return "", str(error)

    def _converse(self, provider: str, event: str, stdin: bytes, kind: str) -> str:
        with door.knock(door.HOOK_S) as line:
            door.begin_hook(line, provider, event, stdin)
            text = self._listen(line, kind)
            # What was taken was shown, whether or not this last word arrives.
            with suppress(OSError):
                if text and kind == "slow":
                    time.sleep(self._dice.between(0, _SLOW_S))
                    line.sendall(b"AW1 printed 0\n")
                elif text and kind == "refused":
                    line.sendall(b"AW1 unprinted 0\n")
        return text

    def _listen(self, line: socket.socket, kind: str) -> str:
        """What is to be printed, as far as this hook lives to hear it."""
        with line.makefile("rb") as answers:
            while (frame := door.read_frame(answers)) is not None:
                if frame[0][1] == b"wait" and kind == "waited":
                    return ""
                if frame[0][1] == b"print":
                    return frame[1].decode()
        return ""
