"""A crowd of scripts: many long-lived processes, each of which ends turns when told.

python crowd.py FOLDER, where FOLDER is the bridge's run folder

One JSON request on each line of standard input, one answer on each line of
standard output:

    {"grow": N}                      N more members; their pids
    {"ask": [member, ...], "seconds": S}
                                     each ends one turn after the other for so long;
                                     milliseconds of every one, by asker
    {"once": [member, ...]}          each ends one turn; what each hook printed, and
                                     when it had (ns)

Members are numbered as they came; one that is named twice asks twice at a time. A
turn's end is the hook client's dialogue without the client: the daemon alone is
measured. It imports only the standard library, so that what it forks is small.
"""

import array
import json
import os
import signal
import socket
import sys
import time
from typing import Any, NoReturn

_LIMIT = 1 << 20
_CHUNK = 1 << 18
_REQUEST = b"AW1 hook script stop 0\n"
_PRINTED = b"AW1 printed 0\n"
_PATIENCE_S = 30.0

_members: list[tuple[int, int]] = []  # pid, and the pipe that tells it what to do
# Answers come as datagrams: whole, from whoever has one.
_hears, _says = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)


def main() -> None:
    """Serve until standard input ends; the members end with us."""
    for each in (_hears, _says):
        for size in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            each.setsockopt(socket.SOL_SOCKET, size, _LIMIT)
    os.chdir(sys.argv[1])
    for line in sys.stdin:
        asked = json.loads(line)
        if "grow" in asked:
            answer: Any = {"pids": [_grow() for _ in range(asked["grow"])]}
        else:
            answer = {"answers": _ask(asked)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _grow() -> int:
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(tell)
        for _, other in _members:
            os.close(other)
        _be_member(told)
    os.close(told)
    _members.append((pid, tell))
    return pid


def _be_member(told: int) -> NoReturn:
    """Fork one asker for each order, so that turns can end at the same time."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with open(told, "rb") as orders:
        for order in orders:
            if os.fork() == 0:
                _answer(json.loads(order))
    os._exit(0)


def _ask(asked: dict[str, Any]) -> list[Any]:
    """Tell them all, then hear them all, in the order they were named."""
    members = asked.get("ask") or asked["once"]
    for number, member in enumerate(members):
        order = {"number": number, "seconds": asked.get("seconds", 0)}
        os.write(_members[member][1], json.dumps(order).encode() + b"\n")
    _hears.settimeout(_PATIENCE_S + asked.get("seconds", 0))
    heard = [json.loads(_hears.recv(_LIMIT)) for _ in members]
    for _, said in heard:
        if isinstance(said, dict):
            raise SystemExit(said["failed"])
    return [said for _, said in sorted(heard)]


def _answer(order: dict[str, Any]) -> NoReturn:
    try:
        if order["seconds"]:
            said: Any = _many_turns(order["seconds"])
        else:
            text = _end_turn()
            said = [text.decode("utf-8", "replace"), time.perf_counter_ns()]
    except Exception as error:
        said = {"failed": repr(error)}
    _says.send(json.dumps([order["number"], said]).encode())
    os._exit(0)


def _many_turns(seconds: float) -> list[float]:
    """Milliseconds of each, to two digits; what is printed is not looked at."""
    took = array.array("d")
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        _end_turn()
        took.append((time.perf_counter() - began) * 1000)
    return [round(each, 2) for each in took]


def _end_turn() -> bytes:
    """What the hook client would have printed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bridge:
        bridge.settimeout(_PATIENCE_S)
        bridge.connect("bridge.sock")
        bridge.sendall(_REQUEST)
        reply = b""
        while (text := _printed(reply)) is None:
            chunk = bridge.recv(_CHUNK)
            if not chunk:
                raise EOFError(reply)
            reply += chunk
        if text:
            bridge.sendall(_PRINTED)
        return text


def _printed(reply: bytes) -> bytes | None:
    """The text of the print among these frames, None until it is whole."""
    header, newline, rest = reply.partition(b"\n")
    if not newline:
        return None
    words = header.split(b" ")
    length = int(words[-1])
    if words[1] == b"wait":
        return _printed(rest[length:])
    return rest if len(rest) >= length else None


if __name__ == "__main__":
    main()
