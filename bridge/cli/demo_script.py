"""A script as a person could have one: it lives long and asks at its turns' ends.

Owns nothing but its own child processes. Each line on standard input is one
request (JSON), each line on standard output its answer:

    {"command": [...]}                     run it below this process, to its end
    {"command": [...], "reads": "later"}   run it, but leave its output unread until
                                           the next line, {"read": true}

It imports only the standard library, since it stands for any program.
"""

import json
import socket
import subprocess
import sys
from typing import Any

_COMMAND_S = 15.0
# So little that a long text does not fit: whoever writes it has to wait for us.
_ROOM_BYTES = 4096
_CHUNK = 65536


def main() -> None:
    """Serve until standard input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("reads") == "later":
            _run_unread(asked["command"])
        else:
            _answer(_run(asked["command"]))


def _run(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_COMMAND_S,
        check=False,
    )
    return {
        "exit": done.returncode,
        "stdout": done.stdout.decode("utf-8", "replace"),
        "stderr": done.stderr.decode("utf-8", "replace"),
    }


def _run_unread(command: list[str]) -> None:
    """Answer when its first byte is here and it waits; read on when told to."""
    ours, theirs = socket.socketpair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM_BYTES)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM_BYTES)
    ours.settimeout(_COMMAND_S)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=theirs.fileno()
    ) as running:
        theirs.close()
        text = ours.recv(1)
        _answer({"begun": bool(text)})
        sys.stdin.readline()
        while chunk := ours.recv(_CHUNK):
            text += chunk
        exit_code = running.wait(_COMMAND_S)
    _answer({"exit": exit_code, "stdout": text.decode("utf-8", "replace")})


def _answer(content: dict[str, Any]) -> None:
    print(json.dumps(content), flush=True)


if __name__ == "__main__":
    main()
