"""A small daemon with the real door, for tests from other processes and users.

    python door.py STATE_FOLDER [DESCRIPTORS]

Says `ready` once it listens, then each event of its log as one line. Answers
hello, and every hook with silence; ends with its stdin.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import trio

from bridge.errors import Refused
from bridge.local.calls import serve_calls
from bridge.local.connection import Connection
from bridge.local.dialogue import HookDialogue
from bridge.local.instance import Instance
from bridge.local.listener import Door
from bridge.local.replies import HelloReply
from bridge.local.requests import AnyRequest, Hello
from bridge.local.stream import LocalListener
from bridge.paths import Paths
from bridge.peer import Peer


class Lines:
    """The log: one line for each event."""

    def warning(self, event: str, **values: object) -> None:
        say(f"{event} {values.get('code', '')}")


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


async def answer(peer: Peer, request: AnyRequest) -> object:
    if not isinstance(request, Hello):
        raise Refused("not_here", "This daemon only says hello.")
    return HelloReply("test", os.getpid(), "running", "embedded", 0)


async def serve(connection: Connection) -> None:
    if connection.header.verb == "call":
        await serve_calls(connection, answer)
    elif connection.header.verb == "hook":
        dialogue = HookDialogue(connection)
        await dialogue.receive()
        await dialogue.silence()
    else:
        await trio.sleep_forever()


async def main(state: Path) -> None:
    paths = Paths(config=state, state=state, config_file=state / "config.json")
    paths.prepare()
    with Instance.claim(paths) as instance:
        listener = LocalListener(instance.listen())
        door = Door(serve, own_uid=os.geteuid(), log=Lines())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(door.accept_forever, listener)
            say("ready")
            await trio.lowlevel.wait_readable(0)
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), hard))
    trio.run(main, Path(sys.argv[1]))
