"""What Claude Code says of a text that it did not let into the chat.

Owns the reply address: a private Unix socket of ours beside the session's inbox,
the one place where Claude Code answers, and the reading of its notices. Promises
that only the process whose inbox was written to is heard, that nothing but its word
on our own text counts, and that the socket is gone when the offer is over. Observed
with 2.1.332: `held` until the person decides, or an end without delivery (`denied`,
`expired`, `dropped`; a refusal is `expired` with a detail). A text that is let in is
not answered at all.
"""

from __future__ import annotations

import hashlib
import os
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

import msgspec
import trio
from msgspec import Struct

from bridge.errors import BridgeError
from bridge.peer import admit, peer_of
from bridge.routes.unix_socket import PATH_LIMIT_BYTES

# A notice is a few hundred bytes, on a connection of its own.
_NOTICE_LIMIT_BYTES = 16 * 1024
_NOTICE_S = 1.0
_PLAIN = "/:_.-"


class Word(StrEnum):
    """What became of our text, where it did not go straight into the chat."""

    HELD = "held"
    NOT_LET_IN = "not_let_in"


_WORDS = {
    "held": Word.HELD,
    "denied": Word.NOT_LET_IN,
    "expired": Word.NOT_LET_IN,
    "refused": Word.NOT_LET_IN,
    "dropped": Word.NOT_LET_IN,
}


class _Notice(Struct, frozen=True):
    type: str
    action: str = ""
    status: str = ""
    orig_msg_id: str = ""


class ReplyPlace:
    """A socket that takes notices; `address` is how Claude Code is told of it."""

    def __init__(self, listener: trio.SocketListener, path: str, pid: int) -> None:
        self._listener = listener
        self._pid = pid
        self.address = f"uds:{quote(path, safe=_PLAIN).replace('~', '%7E')}"

    async def word(self, mark: str) -> Word:
        """Wait for the word on the text that went out with this mark."""
        while True:
            try:
                stream = await self._listener.accept()
            except OSError:  # no descriptor is free: nobody is heard any more
                await trio.sleep_forever()
            async with stream:
                word = _word(await self._read(stream), mark)
            if word is not None:
                return word

    async def _read(self, stream: trio.SocketStream) -> bytes:
        said = bytearray()
        with trio.move_on_after(_NOTICE_S), suppress(BridgeError, OSError):
            peer = peer_of(stream.socket)
            admit(peer, os.geteuid())
            if peer.pid != self._pid:
                return b""
            with suppress(trio.BrokenResourceError):
                async for chunk in stream:
                    said += chunk
                    if len(said) > _NOTICE_LIMIT_BYTES:
                        return b""
        return bytes(said)


def mark_of(offer_id: str) -> str:
    """The message id that goes with an offer; Claude Code takes UUIDs only."""
    return str(uuid.UUID(bytes=hashlib.sha256(offer_id.encode()).digest()[:16]))


@asynccontextmanager
async def reply_place(
    inbox: str, session_id: str, pid: int
) -> AsyncIterator[ReplyPlace | None]:
    """A reply address beside this inbox; None where there can be none.

    The text then goes without one, and what became of it is not told.
    """
    path = _path(inbox, session_id)
    listener = _listener(path)
    if listener is None:
        yield None
        return
    try:
        yield ReplyPlace(listener, str(path), pid)
    finally:
        listener.socket.close()
        with suppress(OSError):
            path.unlink()


def _path(inbox: str, session_id: str) -> Path:
    """Always the same one for a session, so that a crash leaves no second one.

    Claude Code answers into its own folder only, at a name of this form.
    """
    digest = hashlib.sha256(f"agentworks {session_id}".encode()).hexdigest()
    return Path(os.path.realpath(inbox)).parent / f"{digest[:16]}.sock"


def _listener(path: Path) -> trio.SocketListener | None:
    if len(os.fsencode(path)) > PATH_LIMIT_BYTES:
        return None
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen(4)
    except OSError:
        listening.close()
        return None
    return trio.SocketListener(trio.socket.from_stdlib_socket(listening))


def _word(said: bytes, mark: str) -> Word | None:
    for line in said.splitlines():
        try:
            notice = msgspec.json.decode(line, type=_Notice)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        is_notice = (notice.type, notice.action) == ("control", "peer_message_status")
        if is_notice and notice.orig_msg_id == mark:
            return _WORDS.get(notice.status)
    return None
