"""The local socket as a script sees it: one call, or one hook by hand.

Owns a client of its own, apart from the product's, in a few lines. Promises that
every wait has a deadline and that a call without a reply raises Unanswered:
nobody can say then whether it was heard.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

ANSWER_S = 12.0
HOOK_S = 4.0
SOCKET = "bridge.sock"


class Unanswered(Exception):
    """The connection failed or ended before its reply."""


def enter(state: Path) -> None:
    """Change into the folder of the socket, so that its path may be of any length."""
    os.chdir(state / "run")


@contextmanager
def knock(wait_s: float) -> Iterator[socket.socket]:
    """A connection to whoever listens in this folder."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(wait_s)
        try:
            line.connect(SOCKET)
            yield line
        except (OSError, ValueError) as error:
            raise Unanswered(str(error)) from error


def call(request: dict[str, Any], wait_s: float = ANSWER_S) -> dict[str, Any]:
    """The reply: {"ok": ...} or {"error": ...}."""
    body = json.dumps(request).encode()
    with knock(wait_s) as line:
        line.sendall(b"AW1 call %d\n%b" % (len(body), body))
        with line.makefile("rb") as answers:
            frame = read_frame(answers)
    if frame is None:
        raise Unanswered("closed without a reply")
    answer: dict[str, Any] = json.loads(frame[1])
    return answer


def read_frame(answers: IO[bytes]) -> tuple[list[bytes], bytes] | None:
    """The words of one frame's header and its body, None at an early end."""
    header = answers.readline()
    if not header.endswith(b"\n"):
        return None
    words = header.split()
    length = int(words[-1])
    body = answers.read(length)
    return (words, body) if len(body) == length else None


def begin_hook(line: socket.socket, provider: str, event: str, stdin: bytes) -> None:
    """Say that a hook of this provider was started."""
    header = f"AW1 hook {provider} {event} {len(stdin)}\n".encode()
    line.sendall(header + stdin)
