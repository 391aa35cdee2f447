"""A program that could be a bridge: notes what it inherited, then says hello.

    python pretender.py STATE_FOLDER [EXIT_CODE WORDS]

Writes what it sees of itself to `<state>/seen.json`. With EXIT_CODE it prints
WORDS and ends with it instead.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import trio

from bridge.local.calls import serve_calls
from bridge.local.connection import Connection
from bridge.local.instance import Instance
from bridge.local.listener import Door
from bridge.local.replies import HelloReply, StopReply
from bridge.local.requests import AnyRequest, Stop
from bridge.local.stream import LocalListener
from bridge.paths import Paths
from bridge.peer import Peer

LIFE_S = 60.0  # so that a test which fails leaves nothing behind for long


class NoLog:
    """Says nothing."""

    def warning(self, event: str, **values: object) -> None:
        return


def seen() -> dict[str, object]:
    ignored = int(
        Path("/proc/self/status").read_text().split("SigIgn:")[1].split()[0], 16
    )
    blocked = int(
        Path("/proc/self/status").read_text().split("SigBlk:")[1].split()[0], 16
    )
    descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    return {
        "folder": os.getcwd(),
        "session": os.getsid(0) == os.getpid(),
        "variables": sorted(os.environ),
        "stdin": os.readlink("/proc/self/fd/0"),
        "stdout": os.readlink("/proc/self/fd/1"),
        "stderr": os.readlink("/proc/self/fd/2"),
        "descriptors": [fd for fd in descriptors if is_open(fd)],
        "ignored": [number for number in range(1, 32) if ignored >> (number - 1) & 1],
        "blocked": blocked,
    }


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False  # the listing's own
    return True


async def main(state: Path) -> None:
    stopping = trio.Event()

    async def answer(peer: Peer, request: AnyRequest) -> object:
        if isinstance(request, Stop):
            stopping.set()
            return StopReply(os.getpid())
        return HelloReply("test", os.getpid(), "running", "embedded", 0)

    async def serve(connection: Connection) -> None:
        await serve_calls(connection, answer)

    paths = Paths(config=state, state=state, config_file=state / "config.json")
    with Instance.claim(paths) as instance:
        listener = LocalListener(instance.listen())
        door = Door(serve, own_uid=os.geteuid(), log=NoLog())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(door.accept_forever, listener)
            with trio.move_on_after(LIFE_S):
                await stopping.wait()
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.stderr.write(f"{sys.argv[3]}\n")
        if sys.argv[2] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(int(sys.argv[2]))
    # Before trio opens descriptors of its own.
    (Path(sys.argv[1]) / "seen.json").write_text(json.dumps(seen()))
    trio.run(main, Path(sys.argv[1]))
