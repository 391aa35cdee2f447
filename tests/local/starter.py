"""A small daemon for tests: claims an instance, listens, and ends when told.

    python starter.py STATE_FOLDER

Reads a line before it claims (a barrier for many starters), prints what came of
it as one line, and serves one line to each client until its stdin ends.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bridge.errors import BridgeError
from bridge.local.instance import Instance
from bridge.paths import Paths


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def main(state: Path) -> int:
    paths = Paths(config=state, state=state, config_file=state / "config.json")
    os.umask(0o077)
    os.read(0, 1)
    try:
        instance = Instance.claim(paths)
        with instance:
            instance.listen()
            say(f"won {os.getpid()}")
            os.read(0, 1)
    except BridgeError as error:
        say(f"{error.code} {error.sentence()}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
