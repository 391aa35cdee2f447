"""The daemon as `bridge run` starts it: python run_daemon.py STATE [SERVER]."""

from __future__ import annotations

import sys
from pathlib import Path

from bridge import daemon
from bridge.config import load_settings
from bridge.errors import BridgeError
from bridge.paths import Paths


def main(state: Path, server: str = "") -> int:
    """Serve until stopped; the exit code that the command would have."""
    paths = Paths(config=state, state=state, config_file=state / "config.json")
    try:
        return daemon.run(paths, load_settings(paths.config_file, server))
    except BridgeError as error:
        sys.stderr.write(f"Error: {error.sentence()}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
