"""The daemon's side of one hook: what it asked, more time, and one answer.

Owns what is known of the print. Promises that nothing is printed after the time
the client was promised, that the client alone says whether it printed, and that
without its word the outcome is unknown, never guessed.
"""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum

import trio

from bridge.core.render import Print
from bridge.errors import BridgeError, Unavailable
from bridge.local.connection import HOOK_LIMIT, Connection
from bridge.local.wire import format_print, format_wait
from bridge.peer import Peer

SILENCE_S = 0.3  # what a client waits for the daemon before it gives up
# The client writes to its host and then to us; a host that does not read can
# hold it until its own deadline, and no longer.
_LAST_WORD_S = 2.0
_NOTHING = Print()
_NOTHING_FRAME = format_print(_NOTHING)  # made once: most hooks are answered with it


class Outcome(StrEnum):
    """What became of an answer, by the client's last frame."""

    PRINTED = "printed"
    UNPRINTED = "unprinted"
    UNKNOWN = "unknown"


class HookDialogue:
    """One hook's connection, whose first header is `hook`.

    `nothing` is what stands for no answer, for a host that takes silence ill.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._promised = trio.current_time() + SILENCE_S
        self.nothing = _NOTHING

    @property
    def provider(self) -> str:
        """The provider's word in the header."""
        return self._connection.header.words[0]

    @property
    def event(self) -> str:
        """The host's event word in the header."""
        return self._connection.header.words[1]

    @property
    def peer(self) -> Peer:
        """The hook client, by the kernel's word."""
        return self._connection.peer

    @property
    def is_late(self) -> bool:
        """True once the client has been promised no more time."""
        return trio.current_time() >= self._promised

    async def receive(self) -> bytes:
        """The host's stdin, verbatim; raises Invalid or Unavailable."""
        stdin = await self._connection.receive_body(HOOK_LIMIT)
        self._promised = trio.current_time() + SILENCE_S
        return stdin

    async def wait(self, seconds: int, fallback: Print) -> None:
        """Promise an answer within `seconds`; `fallback` is printed if none comes.

        Raises Unavailable when the client is gone: then it prints nothing.
        """
        self._promised = trio.current_time() + seconds
        fallback = fallback if fallback.text else self.nothing
        await self._connection.send(format_wait(seconds, fallback))

    async def answer(self, answer: Print) -> Outcome:
        """Have the client print this, and learn what came of it.

        Past the promised time nothing is sent, and the outcome is unprinted. A
        failed send is followed by reading as well, since the client may have
        had it all.
        """
        if self.is_late:
            return Outcome.UNPRINTED
        with suppress(Unavailable):
            await self._connection.send(format_print(answer))
        return await self._last_word()

    async def silence(self) -> None:
        """Nothing to print; the client closes without a word."""
        if self.nothing.text:
            await self.answer(self.nothing)
            return
        with suppress(Unavailable):
            await self._connection.send(_NOTHING_FRAME)

    async def _last_word(self) -> Outcome:
        by = max(self._promised, trio.current_time()) + _LAST_WORD_S
        with trio.move_on_at(by):
            try:
                frame = await self._connection.receive_frame(0)
            except BridgeError:
                return Outcome.UNKNOWN
            if frame is not None and frame[0].verb in ("printed", "unprinted"):
                return Outcome(frame[0].verb)
        return Outcome.UNKNOWN
