"""A process that has imported the daemon and forks one whenever it is told.

    python zygote.py

Serves lines on stdin as puppet.py does: `start` forks a daemon, `go` lets its
writer thread begin, `end` waits for it. Starting an interpreter for each daemon
would take most of the time of a sweep.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from bridge import daemon
from bridge.config import load_settings
from bridge.errors import BridgeError
from bridge.paths import Paths

WRITER = "journal"  # the name of the store's thread
# What a daemon imports only when it opens its first connection.
LATER = ("anyio", "httpcore", "httpcore._async.http2")
PR_SET_DUMPABLE = 4
PR_SET_PTRACER = 0x59616D61
ANYBODY = ctypes.c_ulong(-1)

_daemon = 0
_released = -1


def start(state: str, server: str, record: str) -> int:
    """Fork a daemon; its pid."""
    return _fork(state, server, record, None)


def start_paused(state: str, server: str, record: str) -> list[int]:
    """Fork a daemon whose writer thread waits for `go`; its pid, and the thread's."""
    global _released
    told, tell = os.pipe()
    wait, _released = os.pipe()
    pid = _fork(state, server, record, (tell, wait))
    os.close(tell)
    os.close(wait)
    writer = os.read(told, 32)
    os.close(told)
    return [pid, int(writer)]


def go() -> None:
    """The writer thread of the paused daemon may begin."""
    os.close(_released)


def end() -> int:
    """The daemon's exit code once it has ended, negative for a signal."""
    global _daemon
    status = os.waitpid(_daemon, 0)[1]
    _daemon = 0
    return os.waitstatus_to_exitcode(status)


def _fork(state: str, server: str, record: str, pause: tuple[int, int] | None) -> int:
    global _daemon
    _daemon = os.fork()
    if _daemon == 0:
        code = 70
        try:
            os.setsid()
            _stand_apart(record)
            if pause is not None:
                os.close(_released)
                _pause_writer(*pause)
            code = _run(Path(state), server)
        finally:
            os._exit(code)
    return _daemon


def _run(state: Path, server: str) -> int:
    """As the command does."""
    paths = Paths(config=state, state=state, config_file=state / "config.json")
    try:
        return daemon.run(paths, load_settings(paths.config_file, server))
    except BridgeError as error:
        sys.stderr.write(f"Error: {error.sentence()}\n")
        sys.stderr.flush()
        return error.exit_code


def _stand_apart(record: str) -> None:
    # Where the kernel lets only parents trace, strace is none.
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYBODY, 0, 0, 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, file in ((0, nothing), (1, output), (2, output)):
        os.dup2(file, number)


def _pause_writer(tell: int, wait: int) -> None:
    """Before its first line the writer thread tells its id and waits."""

    def begin(frame: FrameType, event: str, detail: object) -> None:
        sys.setprofile(None)
        if threading.current_thread().name == WRITER:
            # The daemon lets nobody look in; strace, without root, is nobody.
            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
            os.write(tell, str(threading.get_native_id()).encode())
            os.close(tell)
            os.read(wait, 1)

    threading.setprofile(begin)


def main() -> None:
    """Serve stdin until it ends; a daemon that still runs then is ended."""
    for name in LATER:
        import_module(name)
    gc.freeze()
    say({"ok": os.getpid()})
    actions: dict[str, Callable[..., Any]] = {
        "start": start,
        "start_paused": start_paused,
        "go": go,
        "end": end,
    }
    for line in sys.stdin:
        asked = json.loads(line)
        say({"ok": actions[asked.pop("do")](**asked)})
    if _daemon:
        os.kill(_daemon, signal.SIGKILL)


def say(answer: dict[str, Any]) -> None:
    """One line to whoever started us."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
