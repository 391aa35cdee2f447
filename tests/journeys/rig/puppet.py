"""A process apart from the tests: a person at a terminal, or an attached script.

    python puppet.py

Says its pid on the first line, then does what each line on stdin asks, answers
with one line, and ends when stdin does. A line is one JSON object whose `do`
names the function below and whose rest are its arguments.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bridge.errors import BridgeError
from bridge.local.client import call
from bridge.local.requests import decode_request
from bridge.paths import Paths

ANSWER_S = 20.0
HOOK_S = 10.0
_held: list[socket.socket] = []


def ask(state: str, request: dict[str, Any]) -> dict[str, Any]:
    """One local call of this process."""
    folder = Path(state)
    paths = Paths(config=folder, state=folder, config_file=folder / "config.json")
    try:
        wanted = decode_request(msgspec.json.encode(request))
        return {"ok": json.loads(call(paths, wanted, ANSWER_S))}
    except BridgeError as error:
        return {
            "error": {
                "code": error.code,
                "message": error.message,
                "hint": error.hint,
                "exit": error.exit_code,
            }
        }


def run(command: list[str]) -> dict[str, Any]:
    """One child of this process, with an empty stdin and environment."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={},
        timeout=HOOK_S,
        check=False,
    )
    return {"ok": {"exit": done.returncode, "out": done.stdout.decode()}}


def run_together(command: list[str], times: int) -> dict[str, Any]:
    """As many children at once; what each printed."""
    started = [
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={}
        )
        for _ in range(times)
    ]
    return {"ok": [each.communicate(timeout=HOOK_S)[0].decode() for each in started]}


def hold(state: str) -> dict[str, Any]:
    """A hook that takes what it is to print, if anything, and then says no more."""
    os.chdir(Path(state) / "run")
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    held.settimeout(HOOK_S)
    held.connect("bridge.sock")
    held.sendall(b"AW1 hook script stop 0\n")
    text = b""
    with held.makefile("rb") as answers:
        while header := answers.readline().split():
            text = answers.read(int(header[-1]))
            if header[1] == b"print":
                break
    if text:
        _held.append(held)
    else:
        held.close()
    return {"ok": text.decode()}


def drop() -> dict[str, Any]:
    """The hook that was held dies."""
    _held.pop().close()
    return {"ok": None}


def say(answer: dict[str, Any]) -> None:
    """One line to whoever started us."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


ACTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "ask": ask,
    "run": run,
    "run_together": run_together,
    "hold": hold,
    "drop": drop,
}


def main() -> None:
    """Serve stdin until it ends."""
    say({"ok": os.getpid()})
    for line in sys.stdin:
        asked = json.loads(line)
        say(ACTIONS[asked.pop("do")](**asked))


if __name__ == "__main__":
    main()
