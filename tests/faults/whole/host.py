"""The host of a machine: a Codex with two chats, and the hooks that it starts.

`codex` is a process of that name with one child, so that the kernel's facts are
true; what a hook says and prints goes over memory streams. Owns what a chat's
agent has really been handed, which no daemon can know.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import trio
from msgspec import Struct

from bridge.core.records import ProcessKey
from bridge.local.wire import Incoming
from bridge.providers import process
from tests.fakes.memory_door import MemoryStream
from tests.faults.whole.life import Life

SILENCE_S = 0.3
SHOWN = re.compile(
    r"^\[\w+\] message \d+ of \d+ .*from .*, (msg-\d+), inbox", re.MULTILINE
)
NAMED = re.compile(r"^(msg-\d+) may not have reached you", re.MULTILINE)
REFUSED = re.compile(r"^Your message (\S+) to \S* was refused", re.MULTILINE)
SESSIONS = ("session-one", "session-two")


class Codex(Struct, frozen=True):
    """A process that is called codex, and the hook below it."""

    pid: int
    hook_pid: int


@contextmanager
def codex_process(folder: Path) -> Iterator[Codex]:
    """A shell under Codex's name, whose child stands for each hook."""
    program = folder / "codex"
    shutil.copy("/bin/sh", program)
    words = ["codex", "-c", "sleep 100000 & echo $!; wait"]
    with subprocess.Popen(
        words, executable=program, env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        hook_pid = int(started.stdout.readline())
        try:
            yield Codex(started.pid, hook_pid)
        finally:
            started.kill()
            subprocess.run(["kill", "-9", str(hook_pid)], check=False)


def key_of(codex: Codex) -> ProcessKey:
    """The process key of that program."""
    facts = process.facts_of(codex.pid)
    assert facts is not None
    return process.key_of(facts)


class Chat:
    """One chat: its turns, as its hooks tell of them."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.turn = 1
        self.events = 0
        self.goes_on = False

    def turn_end(self) -> bytes:
        """What the Stop hook gets on stdin."""
        said = {"stop_hook_active": self.goes_on, "turn_id": f"turn-{self.turn}"}
        if not self.goes_on:
            self.turn += 1
            said["turn_id"] = f"turn-{self.turn}"
        self.goes_on = False
        return self._event("Stop", **said)

    def prompt(self) -> bytes:
        """What the UserPromptSubmit hook gets."""
        return self._event("UserPromptSubmit", prompt="Go on with it.")

    def end(self) -> bytes:
        """What the SessionEnd hook gets."""
        return self._event("SessionEnd", reason="exit")

    def _event(self, name: str, **more: object) -> bytes:
        self.events += 1
        return msgspec.json.encode(
            {
                "session_id": self.session_id,
                "hook_event_name": name,
                "cwd": f"/{self.events}",
                **more,
            }
        )


class HookRun:
    """One hook client, from its start to its last word, as hooks/ask.c behaves."""

    def __init__(
        self,
        life: Life,
        chat: Chat,
        event: str,
        stdin: bytes,
        on_print: Callable[[HookRun], None],
        *,
        vanishes: bool,
    ) -> None:
        self.chat = chat
        self.text = ""
        self.is_over = False
        self.is_lost = False
        self._stream: MemoryStream = life.connect()
        self._event = event
        self._stdin = stdin
        self._on_print = on_print
        self._vanishes = vanishes

    @property
    def holds_offer(self) -> bool:
        """It has a whole print frame, and has not said what became of it."""
        return bool(self.text) and not self.is_over

    async def run(self) -> None:
        """Ask, and take in what comes until a print or the end of patience."""
        line = b"AW1 hook codex %b %d\n" % (self._event.encode(), len(self._stdin))
        try:
            await self._stream.send_all(line + self._stdin)
            await self._listen()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.is_over = True

    async def _listen(self) -> None:
        incoming, patience = Incoming(), SILENCE_S
        while True:
            header = incoming.take_header()
            if header is None:
                with trio.move_on_after(patience) as scope:
                    chunk = await self._stream.receive_some()
                if scope.cancelled_caught:
                    await self._last_word(b"AW1 unprinted 0\n")
                    return
                if not chunk:
                    self.is_over = True
                    return
                incoming.feed(bytes(chunk))
                continue
            body = incoming.take_body(header.length)
            assert body is not None, "memory streams bring frames whole"
            if header.verb == "wait" and not self._vanishes:
                patience = float(header.words[0])
                continue
            if header.verb == "print" and body:
                self.text = msgspec.json.decode(body)["reason"]
                self._on_print(self)
                return
            self.is_lost = header.verb == "wait"
            await self._last_word(b"")
            return

    async def end(self, word: str, *, is_seen: bool) -> None:
        """Say what became of the offer; the host goes on with it or does not."""
        self.chat.goes_on = is_seen
        await self._last_word(f"AW1 {word} 0\n".encode() if word else b"")

    async def _last_word(self, frame: bytes) -> None:
        self.is_over = True
        try:
            if frame:
                await self._stream.send_all(frame)
            await self._stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the daemon died before


def shown_in(text: str) -> list[str]:
    """The messages that an offer shows, whole or as a notice."""
    return SHOWN.findall(text)


def named_in(text: str) -> list[str]:
    """The messages that it names as perhaps not arrived."""
    return NAMED.findall(text)


def refused_in(text: str) -> list[str]:
    """The submissions that it tells of as refused."""
    return REFUSED.findall(text)
