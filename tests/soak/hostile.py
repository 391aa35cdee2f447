"""Clients at the door that mean no good.

    python hostile.py

Says its pid, then does what each line on stdin asks, as the workers do. Promises
that each attack ends by itself within some seconds, and that whatever it was told
is given back, so that it can be searched for what it must not hold.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from bridge.clock import SystemClock

_WAIT_S = 1.0
_ENOUGH_S = 8.0  # of one attack, however busy the door is
_TOLD_LIMIT = 200_000
_FORGERIES = (
    b"AW1 hook script stop 0\n",
    b"AW1 hook codex Stop %d\n%b",
    b"AW1 hook claude Stop %d\n%b",
    b"AW1 hook claude UserPromptSubmit %d\n%b",
    b"AW1 mcp script 0\n%b",
    b"AW1 route pi %b 0\n",
)
_OWN_VERBS = ("session_read", "session_peers", "session_message_status")


def _times(count: int) -> Iterator[int]:
    """So many times, as long as it is fun."""
    clock = SystemClock()
    until = clock.running() + _ENOUGH_S
    for number in range(count):
        if clock.running() > until:
            return
        yield number


def _connected(path: str) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(_WAIT_S)
    line.connect(path)
    return line


def _told(line: socket.socket) -> str:
    heard = b""
    with suppress(OSError):
        while len(heard) < _TOLD_LIMIT and (chunk := line.recv(65536)):
            heard += chunk
    line.close()
    return heard.decode(errors="replace")


def _say(path: str, *parts: bytes) -> str:
    try:
        line = _connected(path)
        for part in parts:
            line.sendall(part)
        return _told(line)
    except OSError:
        return ""


def silent(path: str, count: int) -> str:
    """Connections that say nothing for a while."""
    held = []
    with suppress(OSError):
        for _ in _times(count):
            held.append(_connected(path))
    time.sleep(_WAIT_S)
    return "".join(_told(each) for each in held[:3])


def garbage(path: str, count: int) -> str:
    """Bytes of no protocol at all."""
    return "".join(_say(path, os.urandom(3_000)) for _ in _times(count))


def giant(path: str, count: int) -> str:
    """Lengths that nobody has."""
    headers = (
        b"AW1 call 9999999999\n",
        b"AW1 hook script stop 99999999\n",
        b"AW1 hook script stop 99999999999999999999\n",
        b"A" * 70_000,
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
    )
    return "".join(_say(path, headers[each % len(headers)]) for each in _times(count))


def slow(path: str, count: int) -> str:
    """Asks for much and reads nothing of it."""
    held = []
    with suppress(OSError):
        for _ in _times(count):
            line = _connected(path)
            held.append(line)
            for _ in range(40):
                line.sendall(_call({"verb": "agents"}))
    time.sleep(2 * _WAIT_S)
    for line in held:
        line.close()
    return ""


def flood(path: str, count: int) -> str:
    """Many short calls, one after the other and without waiting for an answer."""
    for _ in _times(10 * count):
        with suppress(OSError):
            line = _connected(path)
            line.sendall(_call({"verb": "hello"}))
            line.close()
    return ""


def half(path: str, count: int) -> str:
    """Frames that stop in the middle."""
    whole = _call({"verb": "session_peers", "provider": "script"})
    told = ""
    for number in _times(count):
        told += _say_and_leave(path, whole[: 1 + number * 7 % len(whole)])
        told += _say_and_leave(path, b"AW1 hook script stop 400\n{")
        told += _say_and_leave(path, b"GET /api/external/v1/tools HTTP/1.1\r\nHo")
    return told


def _say_and_leave(path: str, part: bytes) -> str:
    with suppress(OSError), _connected(path) as line:
        line.sendall(part)
    return ""


def forged(path: str, count: int, victims: list[str]) -> str:
    """Frames in the name of somebody else."""
    told = ""
    for number in _times(count):
        victim = victims[number % len(victims)]
        said = json.dumps({"session_id": victim, "hook_event_name": "Stop"}).encode()
        form = _FORGERIES[number % len(_FORGERIES)]
        places = form.count(b"%")
        told += _say(path, form % ((), (said,), (len(said), said))[places])
        verb = _OWN_VERBS[number % len(_OWN_VERBS)]
        told += _say(path, _call({"verb": verb, "provider": "script", "id": victim}))
    return told


def _call(request: dict[str, Any]) -> bytes:
    body = json.dumps(request).encode()
    return b"AW1 call %d\n%b" % (len(body), body)


ATTACKS: dict[str, Callable[..., str]] = {
    "silent": silent,
    "garbage": garbage,
    "giant": giant,
    "slow": slow,
    "flood": flood,
    "half": half,
    "forged": forged,
}


def main() -> None:
    """Serve stdin until it ends."""
    _answer(os.getpid())
    for line in sys.stdin:
        asked = json.loads(line)
        kind, folder = asked.pop("do"), Path(asked.pop("folder"))
        os.chdir(folder)
        _answer(ATTACKS[kind](asked.pop("socket"), **asked)[:_TOLD_LIMIT])


def _answer(answer: object) -> None:
    sys.stdout.write(json.dumps({"ok": answer}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
